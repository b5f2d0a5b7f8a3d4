package jsonval

// AppendJSON writes the value as compact JSON. Undefined members and elements cannot occur in a built
// value; a bare Undefined writes null.
func (v Value) AppendJSON(dst []byte) []byte {
	switch v.kind {
	case Bool:
		if v.bool {
			return append(dst, "true"...)
		}
		return append(dst, "false"...)
	case Number:
		return append(dst, v.text...)
	case String:
		return AppendString(dst, v.text)
	case Array:
		dst = append(dst, '[')
		for i, e := range v.kids.values {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = e.AppendJSON(dst)
		}
		return append(dst, ']')
	case Object:
		dst = append(dst, '{')
		for i, n := range v.kids.names {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(AppendString(dst, n), ':')
			dst = v.kids.values[i].AppendJSON(dst)
		}
		return append(dst, '}')
	default:
		return append(dst, "null"...)
	}
}

// JSON is the value as compact JSON text.
func (v Value) JSON() string { return string(v.AppendJSON(nil)) }

// AppendString writes s as a JSON string, escaping only what JSON demands.
func AppendString(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[start:i]...)
		start = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}
