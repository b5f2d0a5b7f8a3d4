// Package cosmossql parses and evaluates the part of Cosmos DB's query language that the Cosmos DB emulator serves.
// Parse gives a Query, which the emulator then evaluates document by document. Missing values follow the service's
// rule: an expression over an absent member, or over two different types, is undefined. A filter selects a document
// only when it is true.
//
// Served: SELECT * | VALUE expression | list with AS, FROM with an alias, WHERE with = != <> < <= > >=,
// AND OR NOT, IN, BETWEEN, LIKE (with ESCAPE), + - * / %, ??, ?:, object and array literals, parameters,
// c["x"] and c.x, the functions of functions.go, and for one logical partition ORDER BY, TOP, OFFSET LIMIT
// and VALUE COUNT(...).
//
// Everything else is refused with an error that names the construct (an Error with NotImplemented set):
// JOIN, subqueries, EXISTS, ARRAY(...), GROUP BY, DISTINCT, other aggregates, user functions, bitwise
// operators, ||, and every function not listed. No query gets a wrong answer instead of an error.
//
// Sources: "Equality and comparison operators", "Logical operators", "Keywords" and "Constants" in the
// vendor's query reference (learn.microsoft.com/azure/cosmos-db/nosql/query); the functions' pages there;
// what a real account answered, as recorded in the public repository xo/dbimp (COSMOS.md): error codes,
// `$1` names, a missing element in an array literal becoming null, a duplicate alias refused.
//
// Where the sources differ this package follows the reference page: != between two types is undefined
// (the vendor's own test interpreter in azure-cosmos-dotnet-v3 answers true). Stricter than the service:
// a parameter without a value in the list is refused, though the service takes it as undefined.
package cosmossql
