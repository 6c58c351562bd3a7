// SPDX-License-Identifier: Apache-2.0

package tcp

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"gompi/internal/base/wire"
	"gompi/transport"
)

// The handshake. Each side proves that it knows the job's secret, by a keyed hash over the random
// numbers of both sides. No other data crosses a connection before both have done so. The dialer
// sends frames only after the verdict.
//
//	dialer                                     acceptor
//	hello   72 bytes: ids, nonce        ->
//	                                    <-     welcome 96 bytes: id, nonce, mac
//	proof   32 bytes: mac               ->
//	                                    <-     verdict  8 bytes
//	frames                             <->     frames
//
//	offset  bytes  hello                       welcome
//	0       8      "gompitcp"                  the same
//	8       2      version                     the same
//	28      4      serial of the callee        zero
//	32      8/32   job of the callee           nonce (32..63)
//	12      1      'H'                         'W'
//	13      3      zero                        zero
//	16      8      job of the dialer           job of the acceptor
//	24      4      serial of the dialer        serial of the acceptor
//	28      4      serial of the one called    zero
//	32      8/32   job of the one called       nonce (32..63)
//	40      32     nonce                       mac (64..95)
//
// The first 16 bytes have this meaning in every version, so that an error can name the version of
// the peer.
const (
	version = 1

	greetMagic    = "gompitcp"
	offVersion    = 8
	offWord       = 10
	offOrder      = 11
	offRole       = 12
	greetBytes    = 16
	nonceBytes    = 32
	helloBytes    = 72
	welcomeBytes  = 96
	welcomeSigned = 64 // the part of a welcome that its mac covers
	proofBytes    = macBytes
	verdictBytes  = 8
	roleHello     = 'H'
	roleWelcome   = 'W'

	acceptLabel = "gompi tcp 1 accept"
	dialLabel   = "gompi tcp 1 dial"
)

// verdictYes is the only verdict. An acceptor that refuses closes the connection.
const verdictYes = "gompi ok"

type hello struct {
	from, to wire.ProcID
	nonce    [nonceBytes]byte
}

type welcome struct {
	from  wire.ProcID
	nonce [nonceBytes]byte
	mac   [macBytes]byte
}

func nativeOrder() byte {
	if binary.NativeEndian.Uint16([]byte{1, 0}) == 1 {
		return 1
	}
	return 2
}

func putGreeting(b []byte, role byte) {
	copy(b, greetMagic)
	binary.LittleEndian.PutUint16(b[offVersion:], version)
	b[offWord] = bits.UintSize / 8
	b[offOrder] = nativeOrder()
	b[offRole] = role
}

// checkGreeting checks the first greetBytes of a hello or a welcome.
func checkGreeting(b []byte, role byte) error {
	if string(b[:len(greetMagic)]) != greetMagic {
		return fmt.Errorf("%w: not a gompi process", transport.ErrProtocol)
	}
	if v := binary.LittleEndian.Uint16(b[offVersion:]); v != version {
		return fmt.Errorf("%w: it speaks version %d, this process %d", transport.ErrProtocol, v, version)
	}
	if w := b[offWord]; w != bits.UintSize/8 {
		return fmt.Errorf("%w: its words have %d bytes, here %d", transport.ErrProtocol, w, bits.UintSize/8)
	}
	if o := b[offOrder]; o != nativeOrder() {
		return fmt.Errorf("%w: its byte order is %d, here %d", transport.ErrProtocol, o, nativeOrder())
	}
	if b[offRole] != role || b[13]|b[14]|b[15] != 0 {
		return fmt.Errorf("%w: greeting of role %q, expected %q", transport.ErrProtocol, b[offRole], role)
	}
	return nil
}

func putHello(b *[helloBytes]byte, h *hello) {
	putGreeting(b[:], roleHello)
	binary.LittleEndian.PutUint64(b[16:], uint64(h.from.Job))
	binary.LittleEndian.PutUint32(b[24:], h.from.Serial)
	binary.LittleEndian.PutUint32(b[28:], h.to.Serial)
	binary.LittleEndian.PutUint64(b[32:], uint64(h.to.Job))
	copy(b[40:], h.nonce[:])
}

func decodeHello(b *[helloBytes]byte) (hello, error) {
	if err := checkGreeting(b[:greetBytes], roleHello); err != nil {
		return hello{}, err
	}
	h := hello{
		from:  wire.ProcID{Job: wire.JobID(binary.LittleEndian.Uint64(b[16:])), Serial: binary.LittleEndian.Uint32(b[24:])},
		to:    wire.ProcID{Job: wire.JobID(binary.LittleEndian.Uint64(b[32:])), Serial: binary.LittleEndian.Uint32(b[28:])},
		nonce: [nonceBytes]byte(b[40:]),
	}
	return h, nil
}

// putWelcome writes a welcome without its mac.
func putWelcome(b *[welcomeBytes]byte, w *welcome) {
	putGreeting(b[:], roleWelcome)
	binary.LittleEndian.PutUint64(b[16:], uint64(w.from.Job))
	binary.LittleEndian.PutUint32(b[24:], w.from.Serial)
	copy(b[32:], w.nonce[:])
}

func decodeWelcome(b *[welcomeBytes]byte) (welcome, error) {
	if err := checkGreeting(b[:greetBytes], roleWelcome); err != nil {
		return welcome{}, err
	}
	return welcome{
		from:  wire.ProcID{Job: wire.JobID(binary.LittleEndian.Uint64(b[16:])), Serial: binary.LittleEndian.Uint32(b[24:])},
		nonce: [nonceBytes]byte(b[32:]),
		mac:   [macBytes]byte(b[welcomeSigned:]),
	}, nil
}

// sign returns the keyed hash of a label and both greetings. The labels keep a proof of one role
// from serving as a proof of the other.
func sign(secret *[32]byte, label string, hello, welcome []byte) [macBytes]byte {
	return mac(secret, []byte(label), hello, welcome)
}
