package invoice

import (
	"maps"
	"reflect"
	"slices"
	"strings"
)

// plan is the columns and the other members that a Reader uses, as one tree of names. A document is read in one walk
// along it.
type plan struct {
	root    *node
	size    int
	columns []Column
	// places has each column's nodes, in the order of its paths. heads has each column's part of the hash.
	places [][]*node
	heads  [][]byte
	// same is the index of the first column with the same member and rules: the column's own index if none is before
	// it.
	same []int

	id, etag, ts, sysName, rpa, main, duplicates, state, output *node
}

// node is a member that a Reader uses, or an object on the way to one.
type node struct {
	// index is the node's index in the spans of a document.
	index    int
	path     string
	parent   *node
	children map[string]*node
}

func newPlan(columns []Column) *plan {
	p := &plan{root: &node{index: -1}, columns: columns}
	p.id, p.etag, p.ts = p.at("id"), p.at("_etag"), p.at("_ts")
	p.sysName = p.at("request_details.sys_name")
	p.main = p.at("invoice_details_from_rpa.IVCE_DTL_UID")
	p.rpa = p.main.parent
	p.duplicates = p.at("post-processing.duplicate_detail_uids")
	p.state = p.at("sql_writer")
	p.output = p.at("process_output")
	for i, c := range p.columns {
		p.same = append(p.same, slices.IndexFunc(p.columns[:i+1], c.equivalentTo))
		var places []*node
		for _, path := range c.Paths {
			places = append(places, p.at(path))
		}
		p.places = append(p.places, places)
		p.heads = append(p.heads, appendText(appendText(nil, string(c.Table)), c.Name))
	}
	return p
}

// equivalentTo reports whether two columns give the same value or refusal for every document.
func (c Column) equivalentTo(o Column) bool {
	c.Table, c.Name, c.Status, c.Keep, c.Assumed, c.Meaning = o.Table, o.Name, o.Status, o.Keep, o.Assumed, o.Meaning
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

// collect stores the spans of the node's children. The last value of a repeated name counts, as in encoding/json and
// Cosmos DB; the children of the earlier one are dropped.
func (n *node) collect(object []byte, spans [][]byte) {
	eachMember(object, func(name, value []byte) {
		child := n.children[string(name)]
		if child == nil {
			return
		}
		child.clear(spans)
		spans[child.index] = value
		if len(child.children) > 0 && typeOf(value) == jsonObject {
			child.collect(value, spans)
		}
	})
}

func (n *node) clear(spans [][]byte) {
	spans[n.index] = nil
	for _, c := range n.children {
		c.clear(spans)
	}
}

// obstacle returns the nearest value on the way to n that is not an object, which hides the member. It is nil if the
// way is free.
func (n *node) obstacle(spans [][]byte) *node {
	for p := n.parent; p.index >= 0; p = p.parent {
		if given(spans[p.index]) && typeOf(spans[p.index]) != jsonObject {
			return p
		}
	}
	return nil
}

func (n *node) under(o *node) bool {
	for p := n.parent; p != nil; p = p.parent {
		if p == o {
			return true
		}
	}
	return false
}

func (p *plan) members() []string { return slices.Sorted(maps.Keys(p.root.children)) }
