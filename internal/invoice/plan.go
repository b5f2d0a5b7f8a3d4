package invoice

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// plan is the column table and our own members as one tree of names, made once: a document is read in one walk that
// knows at every name whether anybody needs it.
type plan struct {
	root    *node
	size    int
	columns []Column
	// places holds each column's node, nil when its value does not come from a member; heads its part of the hash.
	places []*node
	heads  [][]byte
	// same is the first column that makes the same of the same member: the column's own place where none is before it.
	same []int

	id, etag, ts, sysName, rpa, main, duplicates, state, output *node
}

// node is one member that somebody needs, or an object on the way to one.
type node struct {
	// index is the node's place in the spans of a document.
	index    int
	path     string
	parent   *node
	children map[string]*node
}

// compiled is the plan. It is a constant that Go cannot write as one.
var compiled = sync.OnceValue(newPlan) //nolint:gochecknoglobals // made once from the constant column table, never changed

func newPlan() *plan {
	p := &plan{root: &node{index: -1}, columns: Columns()}
	p.id, p.etag, p.ts = p.at("id"), p.at("_etag"), p.at("_ts")
	p.sysName = p.at("request_details.sys_name")
	p.main = p.at("invoice_details_from_rpa.IVCE_DTL_UID")
	p.rpa = p.main.parent
	p.duplicates = p.at("post-processing.duplicate_detail_uids")
	p.state = p.at("sql_writer")
	p.output = p.at("process_output")
	for i, c := range p.columns {
		p.same = append(p.same, slices.IndexFunc(p.columns[:i+1], c.makesTheSame))
		var place *node
		if c.Source == FromDocument {
			place = p.at(c.Path)
		}
		p.places = append(p.places, place)
		p.heads = append(p.heads, appendText(appendText(nil, string(c.Table)), c.Name))
	}
	return p
}

// makesTheSame reports whether two columns make the same value of the same member, and refuse the same.
func (c Column) makesTheSame(o Column) bool {
	c.Table, c.Assumed, c.Meaning = o.Table, o.Assumed, o.Meaning
	if c.Name != StatusColumn && o.Name != StatusColumn { // whose texts are changed
		c.Name = o.Name
	}
	return reflect.DeepEqual(c, o)
}

// at finds or makes the node of a dotted path.
func (p *plan) at(path string) *node {
	n, walked := p.root, 0
	for name := range strings.SplitSeq(path, ".") {
		walked += len(name)
		child := n.children[name]
		if child == nil {
			child = &node{index: p.size, path: path[:walked], parent: n}
			p.size++
			if n.children == nil {
				n.children = map[string]*node{}
			}
			n.children[name] = child
		}
		n = child
		walked++ // the dot
	}
	return n
}

// collect notes the spans of the node's children. A name that stands twice means its last value, as encoding/json and
// Cosmos DB have it; the first one's children are then forgotten with it.
func (n *node) collect(object []byte, spans [][]byte) {
	eachMember(object, func(name, value []byte) {
		child := n.children[string(name)]
		if child == nil {
			return
		}
		child.forget(spans)
		spans[child.index] = value
		if len(child.children) > 0 && typeOf(value) == jsonObject {
			child.collect(value, spans)
		}
	})
}

func (n *node) forget(spans [][]byte) {
	spans[n.index] = nil
	for _, c := range n.children {
		c.forget(spans)
	}
}

// obstacle answers the nearest object on the way to n that is there but is no object: the member is then not absent,
// its place is taken by something that nobody can read. Nil when the way is free.
func (n *node) obstacle(spans [][]byte) *node {
	for p := n.parent; p.index >= 0; p = p.parent {
		if given(spans[p.index]) && typeOf(spans[p.index]) != jsonObject {
			return p
		}
	}
	return nil
}

// under reports whether n lies inside the object o.
func (n *node) under(o *node) bool {
	for p := n.parent; p != nil; p = p.parent {
		if p == o {
			return true
		}
	}
	return false
}

// Members lists the top-level members that Read looks at, in the order of their names: who fetches no others misses
// nothing.
func Members() []string { return slices.Sorted(maps.Keys(compiled().root.children)) }
