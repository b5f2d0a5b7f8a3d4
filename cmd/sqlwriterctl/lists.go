package main

// limitFlag bounds a list.
type limitFlag struct {
	Limit int `help:"At most N." default:"20" placeholder:"N"`
}

// check refuses a limit of 0: the output would look as if there were nothing.
func (f limitFlag) check() error {
	if f.Limit < 1 {
		return usagef("--limit: expected 1 or more, found %d", f.Limit)
	}
	return nil
}

// maxPage is the most rows that the app gives at a time.
const maxPage = 1000

// collect asks for page after page until it has limit rows, or all of them if limit is 0. It tells if there are others.
func collect[T any](
	a *app, limit int, ask func(limit int, page string) (rows []T, next string, err error),
) (all []T, err error) {
	all = []T{}
	for page := ""; ; {
		size := maxPage
		if limit > 0 {
			size = min(size, limit-len(all))
		}
		rows, next, err := ask(size, page)
		if err != nil {
			return nil, err
		}
		all = append(all, rows...)
		switch page = next; {
		case page == "":
			return all, nil
		case len(all) == limit:
			a.notef("there are more: --limit shows more of them, a filter fewer")
			return all, nil
		}
	}
}
