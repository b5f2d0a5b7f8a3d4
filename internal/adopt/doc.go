// Package adopt takes over a database that somebody else has written to. It writes one ledger row for each line that a
// finished document names, so that from then on an older result cannot overwrite what the lines hold now (promise G3) and
// a redelivery leaves a person's correction alone (G4). It never touches the user's tables.
//
//	Adoption.Run   from window to window until everything is seen; what was begun is continued
//	window         one stretch of _ts: read, turned into ledger rows, written; its last page moves the watermark
//	RowsOf         what one document says for the ledger, or why it says nothing
//	Preview        the same run against a copy: a dry run
//
// # What a crash leaves behind
//
//	      Begin                    Page, Page, ... Page with Advance                    Finish
//	(nothing) -----> running, watermark 0 -----> running, watermark further on -----> done
//	      |                                                                             |
//	      +---- MarkEmpty: this database has no history ----> empty        Begin: once more, from the start
//
// Rows of a page are in the ledger for good. The watermark and the counts move together with the last rows of a window,
// so a run that was killed reads at most one window again; its rows are there already, which changes nothing. Two runs
// at once do not mix: every page names the watermark that it builds on, and only one of them can move it.
//
// # Why windows of _ts
//
// The gateway serves no ORDER BY over partitions (docs/facts.md F63), so "from here on" must be a filter. _ts only grows: a
// document that is touched while the adoption runs moves into a window that is still to come, and the last window is
// open at its end.
package adopt
