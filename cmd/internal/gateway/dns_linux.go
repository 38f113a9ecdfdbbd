package gateway

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// maxDatagram is the largest question.
const maxDatagram = 4096

// ServeNames answers questions until the socket is closed. The socket tells to which address each was sent (IP_PKTINFO,
// IPV6_RECVPKTINFO): the answer has to come from there.
func (g *Gateway) ServeNames(c *net.UDPConn) {
	message, control := make([]byte, maxDatagram), make([]byte, 256)
	for {
		n, m, _, from, err := c.ReadMsgUDPAddrPort(message, control)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // of an answer that did not arrive, for example
			time.Sleep(time.Millisecond)
			continue
		}
		if out := g.names.answer(message[:n]); out != nil {
			c.WriteMsgUDPAddrPort(out, replyFrom(control[:m]), from)
		}
	}
}

// replyFrom makes the control message of an answer from that of its question. The interface is left to the kernel.
func replyFrom(control []byte) []byte {
	list, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return nil
	}
	for _, m := range list {
		switch {
		case m.Header.Level == unix.IPPROTO_IP && m.Header.Type == unix.IP_PKTINFO && len(m.Data) >= unix.SizeofInet4Pktinfo:
			var info unix.Inet4Pktinfo
			copy(info.Spec_dst[:], m.Data[8:12]) // the address in the packet
			return unix.PktInfo4(&info)
		case m.Header.Level == unix.IPPROTO_IPV6 && m.Header.Type == unix.IPV6_PKTINFO && len(m.Data) >= unix.SizeofInet6Pktinfo:
			var info unix.Inet6Pktinfo
			copy(info.Addr[:], m.Data[:16])
			return unix.PktInfo6(&info)
		}
	}
	return nil
}

// namesOverTCP answers questions on a connection: each has its length before it.
func (g *Gateway) namesOverTCP(c net.Conn) {
	defer c.Close()
	for {
		var length [2]byte
		if _, err := io.ReadFull(c, length[:]); err != nil {
			return
		}
		message := make([]byte, binary.BigEndian.Uint16(length[:]))
		if _, err := io.ReadFull(c, message); err != nil {
			return
		}
		out := g.names.answer(message)
		if out == nil {
			return
		}
		binary.BigEndian.PutUint16(length[:], uint16(len(out)))
		if _, err := c.Write(append(length[:], out...)); err != nil {
			return
		}
	}
}
