package etcdtest

import (
	"bufio"
	"encoding/binary"
	"io"
)

// A proxy passes on whole HTTP/2 frames, so that it can distinguish the reply of one request from
// all else on the connection, and never splits a frame. It reads only the nine bytes of a frame's
// header, never the compressed headers of a request; that is enough to distinguish requests and
// replies.

// preface is what an HTTP/2 client sends before its first frame.
const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// frameHeader is the length of a frame's header.
const frameHeader = 9

// The frame types and flags that a proxy uses (RFC 9113, section 6).
const (
	frameData    = 0x0
	frameHeaders = 0x1
	frameReset   = 0x3

	flagEndStream = 0x1
)

// frame is a piece of a connection: one HTTP/2 frame, or other bytes (the preface, or another
// protocol), for which stream is 0.
type frame struct {
	bytes  []byte
	kind   byte
	flags  byte
	stream uint32
}

// frameReader splits one direction of a connection into frames.
type frameReader struct {
	r     *bufio.Reader
	first bool // nothing was read yet
	raw   bool // not HTTP/2
}

func newFrameReader(r io.Reader) *frameReader {
	return &frameReader{r: bufio.NewReaderSize(r, 64<<10), first: true}
}

// next blocks until there is a whole frame, or the connection ends.
func (f *frameReader) next() (frame, error) {
	if f.first {
		f.first = false
		head, err := f.r.Peek(1)
		if err != nil {
			return frame{}, err
		}
		switch head[0] {
		case 0: // a server's first frame: settings, of fewer than 64 KiB
		case preface[0]:
			if head, err = f.r.Peek(len(preface)); err == nil && string(head) == preface {
				return f.take(len(preface))
			}
			f.raw = true
		default:
			f.raw = true
		}
	}
	if f.raw {
		if _, err := f.r.Peek(1); err != nil {
			return frame{}, err
		}
		return f.take(f.r.Buffered())
	}
	head, err := f.r.Peek(frameHeader)
	if err != nil {
		return frame{}, err
	}
	// 24 bits of length, 8 of type, 8 of flags, 1 reserved and 31 of stream.
	length := int(head[0])<<16 | int(head[1])<<8 | int(head[2])
	kind, flags := head[3], head[4]
	stream := binary.BigEndian.Uint32(head[5:]) &^ (1 << 31)
	fr, err := f.take(frameHeader + length)
	fr.kind, fr.flags, fr.stream = kind, flags, stream
	return fr, err
}

func (f *frameReader) take(n int) (frame, error) {
	b := make([]byte, n)
	_, err := io.ReadFull(f.r, b)
	return frame{bytes: b}, err
}

// message returns the gRPC message in a data frame, or its beginning if it takes several frames (of
// up to 16 KiB), or nil.
func (f frame) message() []byte {
	// One byte tells whether the message is compressed, four are its length.
	const prefix = 5
	if f.stream == 0 || f.kind != frameData || len(f.bytes) < frameHeader+prefix {
		return nil
	}
	return f.bytes[frameHeader+prefix:]
}

// ends reports whether this is the sender's last frame on its stream.
func (f frame) ends() bool {
	switch f.kind {
	case frameData, frameHeaders:
		return f.flags&flagEndStream != 0
	case frameReset:
		return true
	default:
		return false
	}
}
