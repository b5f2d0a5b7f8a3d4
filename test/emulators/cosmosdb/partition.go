package cosmosdb

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"unicode/utf16"

	"sqlwriter/test/emulators/cosmosdb/jsonval"
)

// Limits of a partition key value (service quotas: 2 KB with large keys) and of an id.
const (
	maxPartitionKeyBytes = 2048
	maxIDBytes           = 1023
)

// partitionKey is the value of a document's partition key, component by component; a missing member is
// Undefined.
type partitionKey struct {
	values []jsonval.Value
	// text identifies the key: the components with their types, numbers by value.
	text string
}

func newPartitionKey(values []jsonval.Value) (partitionKey, *apiError) {
	var text strings.Builder
	for _, v := range values {
		switch v.Kind() {
		case jsonval.Array, jsonval.Object:
			return partitionKey{},
				badRequest(
					"The partition key component '%s' is an %s; only a string, number, boolean or null can be one.",
					v.JSON(), v.Kind())
		case jsonval.String:
			if len(v.Text()) > maxPartitionKeyBytes {
				return partitionKey{},
					badRequest("Partition key component is longer than %d bytes.", maxPartitionKeyBytes)
			}
			text.WriteString("s" + strconv.Itoa(len(v.Text())) + ":" + v.Text())
		case jsonval.Number:
			text.WriteString("n" + strconv.FormatFloat(v.Float(), 'g', -1, 64))
		case jsonval.Bool:
			text.WriteString("b" + strconv.FormatBool(v.True()))
		case jsonval.Null:
			text.WriteString("0")
		case jsonval.Undefined:
			text.WriteString("u")
		}
		text.WriteByte(';')
	}
	return partitionKey{values: values, text: text.String()}, nil
}

// parsePartitionKey reads the header x-ms-documentdb-partitionkey, a JSON array in which {} stands for a
// missing member.
func parsePartitionKey(header string) (partitionKey, *apiError) {
	v, err := jsonval.Parse(header)
	if err != nil || v.Kind() != jsonval.Array || v.Len() == 0 {
		return partitionKey{}, badRequest("Partition key %s is invalid.", header)
	}
	values := make([]jsonval.Value, v.Len())
	for i, e := range v.Elements() {
		if e.Kind() == jsonval.Object && e.Len() == 0 {
			e = jsonval.Value{}
		}
		values[i] = e
	}
	return newPartitionKey(values)
}

// pkDefinition is the partition key of a container.
type pkDefinition struct {
	paths   [][]string
	multi   bool // MultiHash
	version int
}

// parsePKDefinition reads the member partitionKey of a container.
func parsePKDefinition(v jsonval.Value) (pkDefinition, *apiError) {
	paths := v.Get("paths")
	if paths.Kind() != jsonval.Array || paths.Len() == 0 || paths.Len() > 3 {
		return pkDefinition{}, badRequest("The container needs a partition key of one to three paths.")
	}
	def := pkDefinition{version: 1}
	for _, p := range paths.Elements() {
		names, ok := pathParts(p.Text())
		if p.Kind() != jsonval.String || !ok {
			return pkDefinition{},
				badRequest("The partition key component definition path '%s' could not be accepted.", p.Text())
		}
		def.paths = append(def.paths, names)
	}
	switch kind := v.Get("kind").Text(); {
	case kind == "MultiHash":
		def.multi = true
	case kind != "Hash" && kind != "":
		return pkDefinition{},
			badRequest("The 'kind' value '%s' specified in the partition key definition is invalid.", kind)
	case paths.Len() > 1:
		return pkDefinition{}, badRequest("A partition key of several paths has the kind MultiHash.")
	}
	if version := v.Get("version"); !version.IsUndefined() && version.Kind() != jsonval.Null {
		switch version.JSON() {
		case `1`, `"V1"`:
		case `2`, `"V2"`:
			def.version = 2
		default:
			return pkDefinition{},
				badRequest(
					"The 'version' value '%s' specified in the partition key definition is invalid.", version.JSON())
		}
	}
	if def.multi && def.version != 2 {
		return pkDefinition{}, badRequest("A partition key of the kind MultiHash has version 2.")
	}
	return def, nil
}

// pathParts are the names of a path. A name with other characters than letters, digits and _ stands in quotes, as in
// /"post-processing"/id (PathParser of the vendor's SDKs reads it so).
func pathParts(path string) (names []string, ok bool) {
	for path != "" {
		if path[0] != '/' || len(path) == 1 {
			return nil, false
		}
		path = path[1:]
		if quote := path[0]; quote == '"' || quote == '\'' {
			end := strings.IndexByte(path[1:], quote)
			for end > 0 && path[end] == '\\' { // an escaped quote is part of the name
				next := strings.IndexByte(path[end+2:], quote)
				if next < 0 {
					return nil, false
				}
				end += next + 1
			}
			if end <= 0 {
				return nil, false
			}
			names, path = append(names, path[1:end+1]), path[end+2:]
			continue
		}
		end := strings.IndexByte(path+"/", '/')
		if end == 0 {
			return nil, false
		}
		names, path = append(names, path[:end]), path[end:]
	}
	return names, len(names) > 0
}

// of is the partition key of a document.
func (d pkDefinition) of(doc jsonval.Value) (partitionKey, *apiError) {
	values := make([]jsonval.Value, len(d.paths))
	for i, p := range d.paths {
		values[i] = doc.Path(p...)
	}
	return newPartitionKey(values)
}

// effective is the effective partition key (EPK): the upper-case hexadecimal text by which documents are spread over
// ranges. Clients compute it too, to find the range of a document. Version 1 is MurmurHash3 32 bits and the value
// (docs/facts.md F103), version 2 is MurmurHash3 128 bits with the two top bits clear, MultiHash one such hash per
// component.
func (d pkDefinition) effective(pk partitionKey) string {
	if d.version == 1 {
		v := truncated(pk.values[0])
		hash := murmur32(appendComponent(nil, v, 0x00))
		return upperHex(appendSortable(appendSortable(nil, jsonval.OfInt(int64(hash))), v))
	}
	groups := [][]jsonval.Value{pk.values}
	if d.multi {
		groups = nil
		for _, v := range pk.values {
			groups = append(groups, []jsonval.Value{v})
		}
	}
	var out strings.Builder
	for _, g := range groups {
		var data []byte
		for _, v := range g {
			data = appendComponent(data, v, 0xFF)
		}
		low, high := murmur128(data)
		var sum [16]byte
		binary.BigEndian.PutUint64(sum[:8], high)
		binary.BigEndian.PutUint64(sum[8:], low)
		sum[0] &= 0x3F
		out.WriteString(upperHex(sum[:]))
	}
	return out.String()
}

// boundaries are the limits of n equal ranges: n+1 values from "" to "FF".
func (d pkDefinition) boundaries(n int) []string {
	out := make([]string, n+1)
	for i := 1; i < n; i++ {
		out[i] = d.bound(d.space() / uint64(n) * uint64(i))
	}
	out[n] = "FF"
	return out
}

// bound is the effective partition key at a position of the hash space, and position its inverse. Version 1 has 32
// bits, version 2 has 62 in the first half of its digits.
func (d pkDefinition) bound(position uint64) string {
	if d.version == 1 {
		return upperHex(appendSortable(nil, jsonval.OfInt(int64(position)))) //nolint:gosec // 32 bits
	}
	return fmt.Sprintf("%016X%016X", position, 0)
}

func (d pkDefinition) space() uint64 {
	if d.version == 1 {
		return 1 << 32
	}
	return 1 << 62
}

func (d pkDefinition) position(bound string) uint64 {
	switch {
	case bound == "":
		return 0
	case bound == "FF":
		return d.space()
	case d.version == 1:
		data, err := hex.DecodeString(bound)
		if err != nil {
			panic(err) // bounds are made by bound
		}
		return uint64(sortedNumber(data[1:]))
	}
	n, err := strconv.ParseUint(bound[:16], 16, 64)
	if err != nil {
		panic(err) // bounds are made by bound
	}
	return n
}

// appendComponent writes one component as the hash wants it: a type marker, the value, a suffix after text.
func appendComponent(dst []byte, v jsonval.Value, suffix byte) []byte {
	switch v.Kind() {
	case jsonval.Null:
		return append(dst, 0x01)
	case jsonval.Bool:
		if v.True() {
			return append(dst, 0x03)
		}
		return append(dst, 0x02)
	case jsonval.Number:
		return binary.LittleEndian.AppendUint64(append(dst, 0x05), math.Float64bits(v.Float()))
	case jsonval.String:
		return append(append(append(dst, 0x08), v.Text()...), suffix)
	default:
		return append(dst, 0x00)
	}
}

// Version 1 keeps the first 100 characters of a text, and of them at most 101 bytes behind the hash.
const (
	maxV1Characters = 100
	maxV1Bytes      = 101
)

func truncated(v jsonval.Value) jsonval.Value {
	if text := utf16.Encode([]rune(v.Text())); v.Kind() == jsonval.String && len(text) > maxV1Characters {
		return jsonval.OfString(string(utf16.Decode(text[:maxV1Characters])))
	}
	return v
}

// appendSortable writes a value so that the bytes of two values sort as the values do.
func appendSortable(dst []byte, v jsonval.Value) []byte {
	switch v.Kind() {
	case jsonval.String:
		text := v.Text()
		dst = append(dst, 0x08)
		for _, b := range []byte(text[:min(len(text), maxV1Bytes)]) {
			dst = append(dst, b+1)
		}
		if len(text) < maxV1Bytes {
			dst = append(dst, 0x00)
		}
		return dst
	case jsonval.Number:
		bits := math.Float64bits(v.Float())
		if bits>>63 == 0 {
			bits ^= 1 << 63
		} else {
			bits = -bits
		}
		dst = append(dst, 0x05, byte(bits>>56))
		for bits <<= 8; bits<<7 != 0; bits <<= 7 { // seven bits, and a one when more follow
			dst = append(dst, byte(bits>>56)|1)
		}
		return append(dst, byte(bits>>56)&^1)
	default:
		return appendComponent(dst, v, 0x00)
	}
}

// sortedNumber is the number, not negative, that appendSortable wrote behind its type.
func sortedNumber(data []byte) float64 {
	bits := uint64(data[0])<<56 ^ 1<<63
	for i, b := range data[1:] {
		bits |= uint64(b>>1) << (49 - 7*i)
	}
	return math.Float64frombits(bits)
}

func upperHex(data []byte) string { return strings.ToUpper(hex.EncodeToString(data)) }

// murmur32 is MurmurHash3_x86_32 with seed 0 (Austin Appleby's public algorithm).
func murmur32(data []byte) uint32 {
	const c1, c2 = 0xcc9e2d51, 0x1b873593
	scramble := func(k uint32) uint32 { return bits.RotateLeft32(k*c1, 15) * c2 }
	var h uint32
	n := uint32(len(data))
	for ; len(data) >= 4; data = data[4:] {
		h ^= scramble(binary.LittleEndian.Uint32(data))
		h = bits.RotateLeft32(h, 13)*5 + 0xe6546b64
	}
	var tail [4]byte
	copy(tail[:], data)
	h ^= scramble(binary.LittleEndian.Uint32(tail[:])) ^ n
	h = (h ^ h>>16) * 0x85ebca6b
	h = (h ^ h>>13) * 0xc2b2ae35
	return h ^ h>>16
}

// murmur128 is MurmurHash3_x64_128 with seed 0 (Austin Appleby's public algorithm).
func murmur128(data []byte) (h1, h2 uint64) {
	const c1, c2 = 0x87c37b91114253d5, 0x4cf5ad432745937f
	first := func(k uint64) uint64 { return bits.RotateLeft64(k*c1, 31) * c2 }
	second := func(k uint64) uint64 { return bits.RotateLeft64(k*c2, 33) * c1 }
	n := uint64(len(data))
	for ; len(data) >= 16; data = data[16:] {
		h1 ^= first(binary.LittleEndian.Uint64(data))
		h1 = (bits.RotateLeft64(h1, 27)+h2)*5 + 0x52dce729
		h2 ^= second(binary.LittleEndian.Uint64(data[8:]))
		h2 = (bits.RotateLeft64(h2, 31)+h1)*5 + 0x38495ab5
	}
	var tail [16]byte
	copy(tail[:], data)
	h2 ^= second(binary.LittleEndian.Uint64(tail[8:])) ^ n
	h1 ^= first(binary.LittleEndian.Uint64(tail[:])) ^ n
	h1 += h2
	h2 += h1
	h1, h2 = finalMix(h1), finalMix(h2)
	h1 += h2
	return h1, h2 + h1
}

func finalMix(k uint64) uint64 {
	k = (k ^ k>>33) * 0xff51afd7ed558ccd
	k = (k ^ k>>33) * 0xc4ceb9fe1a85ec53
	return k ^ k>>33
}
