package cosmosdb

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"sqlwriter/test/emulators/cosmosdb/cosmossql"
	"sqlwriter/test/emulators/cosmosdb/jsonval"
)

// maxPatchOperations is the limit of one patch (vendor's "Partial document update FAQ").
const maxPatchOperations = 10

// patchRequest is a partial update: all operations or none.
type patchRequest struct {
	condition  *cosmossql.Query // nil = none
	operations []patchOperation
}

type patchOperation struct {
	op    string
	path  []string // unescaped segments of the JSON pointer
	text  string   // the pointer as sent, for messages
	value jsonval.Value
}

func (r *patchRequest) parseOperations(list jsonval.Value) *apiError {
	switch {
	case list.Kind() != jsonval.Array || list.Len() == 0:
		return badRequest("The patch request has no operations: at least one is needed.")
	case list.Len() > maxPatchOperations:
		return badRequest("The number of patch operations can't exceed '%d'.", maxPatchOperations)
	}
	for i, o := range list.Elements() {
		op, path, value := o.Get("op").Text(), o.Get("path"), o.Get("value")
		number := i + 1
		if path.Kind() != jsonval.String || !strings.HasPrefix(path.Text(), "/") || len(path.Text()) < 2 {
			return badRequest(
				"For operation(%d): the path '%s' is not a JSON pointer to a member.", number, path.Text())
		}
		switch op {
		case "add", "set", "replace", "incr":
			if value.IsUndefined() {
				return badRequest("For operation(%d): '%s' has no value.", number, op)
			}
		case "remove":
		case "move":
			return badRequest("For operation(%d): 'move' is not implemented by this emulator.", number)
		default:
			return badRequest(
				"For operation(%d): '%s' is not an operation; there are add, set, replace, remove, incr and move.",
				number, op)
		}
		segments := strings.Split(path.Text()[1:], "/")
		for j, s := range segments {
			segments[j] = strings.ReplaceAll(strings.ReplaceAll(s, "~1", "/"), "~0", "~")
		}
		r.operations = append(r.operations, patchOperation{op: op, path: segments, text: path.Text(), value: value})
	}
	return nil
}

// apply is the document with every operation done, in their order; the first that cannot be done refuses
// the whole patch.
func (r *patchRequest) apply(doc jsonval.Value, pk pkDefinition) (jsonval.Value, *apiError) {
	for i, o := range r.operations {
		if err := o.allowed(i+1, pk); err != nil {
			return doc, err
		}
		next, reason := o.at(doc, o.path)
		if reason != "" {
			return doc, badRequest("For operation(%d): %s '%s': %s.", i+1, o.op, o.text, reason)
		}
		doc = next
	}
	return doc, nil
}

// allowed refuses what a patch may not touch: id, the partition key and its parents, system members.
func (o patchOperation) allowed(number int, pk pkDefinition) *apiError {
	if o.path[0] == "id" || slices.Contains(systemMembers(), o.path[0]) {
		return badRequest("For operation(%d): '%s' is a system property and cannot be patched.", number, o.text)
	}
	for _, p := range pk.paths {
		n := min(len(p), len(o.path))
		if slices.Equal(p[:n], o.path[:n]) {
			return badRequest(
				"For operation(%d): '%s' is or holds the partition key and cannot be patched.", number, o.text)
		}
	}
	return nil
}

// at applies the operation below v; reason is what is wrong, "" when it is done.
func (o patchOperation) at(v jsonval.Value, path []string) (out jsonval.Value, reason string) {
	name := path[0]
	if len(path) == 1 {
		switch v.Kind() {
		case jsonval.Object:
			return o.member(v, name)
		case jsonval.Array:
			return o.element(v, name)
		default:
			return v, "the parent is a " + v.Kind().String() + ", neither object nor array"
		}
	}
	switch v.Kind() {
	case jsonval.Object:
		child := v.Get(name)
		if child.IsUndefined() {
			return v, "the parent '" + name + "' does not exist"
		}
		child, reason = o.at(child, path[1:])
		return v.With(name, child), reason
	case jsonval.Array:
		i, ok := arrayIndex(name)
		if !ok || i >= v.Len() {
			return v, "the parent element '" + name + "' does not exist"
		}
		child, reason := o.at(v.At(i), path[1:])
		elements := slices.Clone(v.Elements())
		elements[i] = child
		return jsonval.OfArray(elements), reason
	default:
		return v, "the parent of '" + name + "' is a " + v.Kind().String() + ", neither object nor array"
	}
}

func (o patchOperation) member(v jsonval.Value, name string) (jsonval.Value, string) {
	old := v.Get(name)
	if old.IsUndefined() && (o.op == "replace" || o.op == "remove") {
		return v, "it does not exist"
	}
	switch o.op {
	case "remove":
		return v.Without(name), ""
	case "incr":
		sum, reason := increment(old, o.value)
		return v.With(name, sum), reason
	default:
		return v.With(name, o.value), ""
	}
}

// element works on an array: "-" is the place after the last, add inserts, set replaces (or appends at the
// end), as the vendor's page "Partial document update" has it.
func (o patchOperation) element(v jsonval.Value, name string) (jsonval.Value, string) {
	elements := slices.Clone(v.Elements())
	i, ok := arrayIndex(name)
	if name == "-" {
		i, ok = len(elements), true
	}
	if !ok || i > len(elements) {
		return v, "the array has no place '" + name + "'"
	}
	if i == len(elements) && o.op != "add" && o.op != "set" {
		return v, "the array has no element '" + name + "'"
	}
	switch o.op {
	case "add":
		elements = slices.Insert(elements, i, o.value)
	case "remove":
		elements = slices.Delete(elements, i, i+1)
	case "incr":
		sum, reason := increment(elements[i], o.value)
		if reason != "" {
			return v, reason
		}
		elements[i] = sum
	default:
		if i == len(elements) {
			elements = append(elements, o.value)
		} else {
			elements[i] = o.value
		}
	}
	return jsonval.OfArray(elements), ""
}

// arrayIndex reads an array index: decimal, without leading zeros.
func arrayIndex(s string) (int, bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil && n >= 0 && strconv.Itoa(n) == s
}

// increment adds; a missing field starts at 0. Integers stay exact.
func increment(old, by jsonval.Value) (sum jsonval.Value, reason string) {
	if by.Kind() != jsonval.Number {
		return old, "the value to add is a " + by.Kind().String() + ", not a number"
	}
	if old.IsUndefined() {
		return by, ""
	}
	if old.Kind() != jsonval.Number {
		return old, "it is a " + old.Kind().String() + ", not a number"
	}
	a, aInt := old.Int()
	b, bInt := by.Int()
	overflow := b > 0 && a > math.MaxInt64-b || b < 0 && a < math.MinInt64-b
	if aInt && bInt && !overflow {
		return jsonval.OfInt(a + b), ""
	}
	sum = jsonval.OfFloat(old.Float() + by.Float())
	if sum.IsUndefined() {
		return old, "the sum does not fit a double"
	}
	return sum, ""
}
