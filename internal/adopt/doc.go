// Package adopt takes over a database that another writer has filled. It writes one ledger row for each line of a
// finished document. From then on an older result cannot overwrite a line (docs/requirements.md R4), and a redelivery
// leaves a person's correction alone (docs/requirements.md R5). It never changes the user's tables.
//
//	Adoption.Run   processes window after window until all are done; continues an unfinished run
//	window         one range of _ts: read, converted into ledger rows, written; its last page moves the watermark
//	RowsOf         the ledger rows of one document, or the reason why it has none
//
// # Crashes
//
//	      Begin                    Page, Page, ... Page with Advance                    Finish
//	(nothing) -----> running, watermark 0 -----> running, watermark further on -----> done
//	      |                                                                             |
//	      +---- MarkEmpty: this database has no history ----> empty        Begin: once more, from the start
//
// The rows of a page are durable. The watermark and the counts move together with the last rows of a window. A killed
// run therefore repeats at most one window, which changes nothing.
//
// Two runs at the same time do not mix: every page names the watermark that it builds on, and only one run can move it.
//
// # Why windows of _ts
//
// The gateway serves no ORDER BY over partitions (docs/facts.md F63), so progress must be a filter. _ts only grows: a
// document that changes during the adoption moves into a later window, and the last window has no end. Only within a
// window the service's continuation is used; it is never stored.
package adopt
