package funchost

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// requestPath is the path as the host sees it: decoded but for %2F, without dot segments; empty segments stay.
func requestPath(escaped string) string {
	decoded := decodePath(escaped)
	var out []string
	parts := strings.Split(strings.TrimPrefix(decoded, "/"), "/")
	for i, part := range parts {
		if part != "." && part != ".." {
			out = append(out, part)
			continue
		}
		if part == ".." && len(out) > 0 {
			out = out[:len(out)-1]
		}
		if i == len(parts)-1 {
			out = append(out, "")
		}
	}
	return "/" + strings.Join(out, "/")
}

func decodePath(escaped string) string {
	var out strings.Builder
	for i := 0; i < len(escaped); i++ {
		if b, ok := escapedByte(escaped, i); ok && b != '/' {
			out.WriteByte(b)
			i += 2
			continue
		}
		out.WriteByte(escaped[i])
	}
	if !utf8.ValidString(out.String()) {
		return escaped
	}
	return out.String()
}

// escapedByte reads %XX at i.
func escapedByte(s string, i int) (byte, bool) {
	if s[i] != '%' || i+2 >= len(s) {
		return 0, false
	}
	n, err := strconv.ParseUint(s[i+1:i+3], 16, 8)
	return byte(n), err == nil
}

// encodePath writes a path back as the host shows it in Url (PathString.ToUriComponent).
func encodePath(path string) string {
	const hexDigits = "0123456789ABCDEF"
	var out strings.Builder
	for i := range len(path) {
		c := path[i]
		_, escaped := escapedByte(path, i)
		if escaped || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
			strings.IndexByte("-._~!$&'()*+,;=:@/", c) >= 0 {
			out.WriteByte(c)
			continue
		}
		out.WriteString(string([]byte{'%', hexDigits[c>>4], hexDigits[c&0xF]}))
	}
	return out.String()
}
