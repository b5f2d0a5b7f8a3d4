package invoice

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"slices"
)

// Recipe makes the hashes of one version of a mapping: of the one in use, or of an earlier one whose columns all stand
// unchanged in it (Mapping.Recipe).
type Recipe struct {
	mapping *Mapping
	version int
	// places are those of the version's columns, in the order of the hashes: by table and name.
	places []int
	// has says for each column of the mapping whether the version had it.
	has []bool
}

// recordedColumn is a column as far as it decides a stored value or a hash of it.
type recordedColumn struct {
	Table  Table             `json:"table,omitempty"`
	Name   string            `json:"name,omitempty"`
	Source Source            `json:"source"`
	From   []string          `json:"from,omitempty"`
	Value  string            `json:"value,omitempty"`
	Kind   Kind              `json:"kind"`
	Scale  int               `json:"scale,omitempty"`
	Flags  [2]string         `json:"flags,omitzero"`
	Words  map[string]string `json:"words,omitempty"`
	Cut    int               `json:"cut,omitempty"`
	Local  bool              `json:"local,omitempty"`
	Bare   string            `json:"without_offset,omitempty"`
	Zone   string            `json:"zone,omitempty"`
	Keep   bool              `json:"keep,omitempty"`
	Status bool              `json:"status,omitempty"`
}

func (c Column) recorded() recordedColumn {
	r := recordedColumn{
		Source: c.Source, From: c.Paths, Value: c.Constant, Kind: c.Kind, Words: c.Words, Local: c.Local,
		Bare: c.WithoutOffset,
	}
	switch c.Kind {
	case Decimal:
		r.Scale = c.Scale
	case Flag:
		r.Flags = c.Flags
	case Text:
		if c.Cut {
			r.Cut = c.Max
		}
	case Integer, Time:
	}
	if c.Local || c.WithoutOffset == BareInZone {
		r.Zone = c.zone.String()
	}
	return r
}

// SameValue reports whether two columns have one value in every document that neither refuses.
func (c Column) SameValue(o Column) bool { return textOf(c.recorded()) == textOf(o.recorded()) }

func textOf(r recordedColumn) string {
	b, err := json.Marshal(r)
	if err != nil {
		panic(err) // no such type has an error
	}
	return string(b)
}

// newRecipe sets a mapping's lines, and makes its recipe.
func newRecipe(m *Mapping) Recipe {
	r := Recipe{mapping: m, has: make([]bool, len(m.columns))}
	for i := range m.columns {
		r.places, r.has[i] = append(r.places, i), true
	}
	slices.SortFunc(r.places, func(i, j int) int {
		a, b := m.columns[i], m.columns[j]
		return cmp.Or(cmp.Compare(a.Table, b.Table), cmp.Compare(a.Name, b.Name))
	})
	sum := sha256.New()
	sum.Write(appendText(nil, recipeNumber))
	for _, i := range r.places {
		c := m.columns[i]
		line := c.recorded()
		line.Table, line.Name, line.Keep, line.Status = c.Table, c.Name, c.Keep, c.Status
		m.lines = append(m.lines, textOf(line))
		sum.Write(appendText(nil, textOf(line)))
	}
	const most = 1<<31 - 2 // 0 is adopt.Unproven, and the ledger has 32 bits
	r.version = 1 + int(binary.BigEndian.Uint32(sum.Sum(nil))%most)
	return r
}

// Recipe is the recipe of an earlier version, of which lines are the Lines. It is false unless all of its columns stand
// unchanged in the mapping: nobody can tell what the others had.
func (m *Mapping) Recipe(version int, lines []string) (Recipe, bool) {
	m = m.orDefault()
	if version == m.own.version {
		return m.own, true
	}
	r := Recipe{mapping: m, version: version, has: make([]bool, len(m.columns))}
	for _, line := range lines {
		at := slices.Index(m.lines, line)
		if at < 0 {
			return Recipe{}, false
		}
		place := m.own.places[at]
		r.places, r.has[place] = append(r.places, place), true
	}
	return r, len(lines) > 0
}

// Recorded is a mapping that a migration chose, as a database keeps it.
type Recorded struct {
	Version int
	Lines   []string
}

// Without names the columns (TABLE.COLUMN) of lines that do not stand unchanged among others.
func Without(lines, others []string) (columns []string) {
	for _, line := range lines {
		var c recordedColumn
		if err := json.Unmarshal([]byte(line), &c); err != nil || !slices.Contains(others, line) {
			columns = append(columns, string(c.Table)+"."+c.Name)
		}
	}
	return columns
}

// Version is the version whose hashes the recipe makes.
func (r Recipe) Version() int { return r.version }

// Has reports whether the version had a column, by its place in Mapping.Columns.
func (r Recipe) Has(place int) bool { return r.has[place] }

// Replaces reports whether a write of want replaces a value of before in a column that the version did not have: the
// value is somebody else's.
func (r Recipe) Replaces(before, want []Value) bool {
	for i, c := range r.mapping.columns {
		if !r.has[i] && !before[i].Null && before[i] != want[i] && (!c.Keep || !want[i].Null) {
			return true
		}
	}
	return false
}
