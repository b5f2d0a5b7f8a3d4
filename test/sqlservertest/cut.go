package sqlservertest

import (
	"bytes"
	"encoding/binary"
	"sync"
	"unicode/utf16"
)

// Place is where the connection is cut.
type Place int

const (
	// MidRequest means that half of the packet with the marker has gone to the server.
	MidRequest Place = iota
	// MidReply means that the server has the whole request and does it, and half of the first piece of its answer has
	// gone to the client.
	MidReply
)

// cut is one thing to look for.
type cut struct {
	marker []byte
	place  Place
	// left is how often it is still to happen; negative means each time. made counts.
	left, made int
}

// CutAt cuts the connection at requests that contain a text: the next times ones, or all of them when times is 0. It
// reads the stream's packets, so the connection must not be encrypted: encrypt=disable. made gives the number of cuts
// so far.
func (p *Proxy) CutAt(text string, place Place, times int) (made func() int) {
	c := &cut{place: place, left: times}
	if times == 0 {
		c.left = -1
	}
	for _, unit := range utf16.Encode([]rune(text)) { // TDS carries text as UTF-16, little end first
		c.marker = binary.LittleEndian.AppendUint16(c.marker, unit)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cuts = append(p.cuts, c)
	return func() int {
		p.mu.Lock()
		defer p.mu.Unlock()
		return c.made
	}
}

// due finds the cut that the payload of a packet asks for, and counts it.
func (p *Proxy) due(payload []byte) (Place, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.cuts {
		if c.left != 0 && bytes.Contains(payload, c.marker) {
			c.made++
			c.left = max(c.left-1, -1)
			return c.place, true
		}
	}
	return 0, false
}

// watches reports whether there is anything to look for.
func (p *Proxy) watches() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.cuts) > 0
}

// headerSize is that of a TDS packet: kind, status, length of the whole packet (2 bytes), process, number, window.
const headerSize = 8

// lastPacket is the bit of the status that ends a message.
const lastPacket = 1

// link is one client's line to the server.
type link struct {
	proxy *Proxy

	mu sync.Mutex
	// packet is what has come of the packet under way; message what has come of its message, headers left out.
	packet, message []byte
	// breaks says that the answer that comes next is cut.
	breaks bool
}

// request passes on what the client sends, and cuts it where that is wanted. A marker may lie across two packets.
func (l *link) request(read []byte) int {
	if !l.proxy.watches() {
		return len(read)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.packet = append(l.packet, read...)
	for len(l.packet) >= headerSize {
		size := int(binary.BigEndian.Uint16(l.packet[2:]))
		if size < headerSize || len(l.packet) < size {
			break
		}
		l.message = append(l.message, l.packet[headerSize:size]...)
		ends := l.packet[1]&lastPacket != 0
		l.packet = l.packet[size:]
		place, wanted := l.proxy.due(l.message)
		switch {
		case wanted && place == MidRequest:
			return len(read) / 2
		case wanted:
			l.breaks = true
		}
		if ends || wanted {
			l.message = nil
		}
	}
	return len(read)
}

// reply passes on what the server sends.
func (l *link) reply(read []byte) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.proxy.swallows():
		return 0
	case l.breaks:
		return len(read) / 2
	}
	return len(read)
}
