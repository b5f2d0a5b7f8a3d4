// Package staging lays out the script root that the Functions host wants: host.json, the binary, and every function's
// folder as a direct child (docs/facts.md F30: the host looks one level deep, so the source folder functions/ must be
// flattened). Check holds such a root against the rules of docs/facts.md; Build refuses to leave one that breaks any,
// because the host itself would publish it and then run no function, with a line in a log as the only sign.
package staging
