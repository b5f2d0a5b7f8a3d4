// Package shared is what the SQL adapters have in common: the form in which a request travels to the database, and the
// bookkeeping that both engines do with the same statements (Journal, Runs, Reports). It knows no driver; what the engines say
// differently is a few words that an adapter gives.
package shared
