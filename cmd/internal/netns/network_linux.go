package netns

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// upAndLocal brings the loopback interface up, and makes every address one of this namespace.
func upAndLocal() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	r, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	r.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, r); err != nil {
		return fmt.Errorf("bringing the loopback interface up: %w", err)
	}
	if err := local(unix.AF_INET); err != nil {
		return fmt.Errorf("making every address local: %w", err)
	}
	if err := local(unix.AF_INET6); err != nil && !errors.Is(err, unix.EAFNOSUPPORT) && !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.EACCES) && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("making every IPv6 address local: %w", err) // without IPv6 none can be reached anyway
	}
	return nil
}

// loopback is the index of the loopback interface in every network namespace.
const loopback = 1

// local adds the route `local default dev lo`: rtnetlink(7), RTM_NEWROUTE.
func local(family uint8) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var attribute [unix.SizeofRtAttr + 4]byte
	binary.NativeEndian.PutUint16(attribute[0:], uint16(len(attribute)))
	binary.NativeEndian.PutUint16(attribute[2:], unix.RTA_OIF)
	binary.NativeEndian.PutUint32(attribute[4:], loopback)
	m := struct {
		h unix.NlMsghdr
		r unix.RtMsg
		a [len(attribute)]byte
	}{unix.NlMsghdr{Type: unix.RTM_NEWROUTE, Flags: unix.NLM_F_REQUEST | unix.NLM_F_ACK | unix.NLM_F_CREATE},
		unix.RtMsg{Family: family, Table: unix.RT_TABLE_LOCAL, Protocol: unix.RTPROT_BOOT, Scope: unix.RT_SCOPE_HOST, Type: unix.RTN_LOCAL}, attribute}
	m.h.Len = uint32(unsafe.Sizeof(m))
	out := unsafe.Slice((*byte)(unsafe.Pointer(&m)), m.h.Len)
	if err := unix.Sendto(fd, out, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	answer := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, answer, 0)
	if err != nil {
		return err
	}
	if n < unix.SizeofNlMsghdr+4 || binary.NativeEndian.Uint16(answer[4:]) != unix.NLMSG_ERROR {
		return errors.New("the kernel's answer is no acknowledgement")
	}
	if code := int32(binary.NativeEndian.Uint32(answer[unix.SizeofNlMsghdr:])); code != 0 {
		return unix.Errno(-code)
	}
	return nil
}

// listen opens the sockets: two for questions about names (IPv4, IPv6), and then one for each port, of both families. Where
// there is no IPv6, the second is -1, and the others are of IPv4.
func listen(ports []uint16) ([]int, error) {
	four, err := names(unix.AF_INET, &unix.SockaddrInet4{Port: 53}, unix.IPPROTO_IP, unix.IP_PKTINFO)
	if err != nil {
		return nil, fmt.Errorf("listening for names: %w", err)
	}
	list := []int{four}
	if six, err := names(unix.AF_INET6, &unix.SockaddrInet6{Port: 53}, unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO); err == nil {
		list = append(list, six)
	}
	for _, port := range append([]uint16{53}, ports...) {
		fd, err := tcp(port)
		if err != nil {
			return nil, fmt.Errorf("listening on port %d: %w", port, err)
		}
		list = append(list, fd)
	}
	return list, nil
}

// names opens a socket that tells to which address each datagram was sent.
func names(family int, at unix.Sockaddr, level, option int) (int, error) {
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, err
	}
	if family == unix.AF_INET6 {
		err = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1)
	}
	if err == nil {
		err = unix.SetsockoptInt(fd, level, option, 1)
	}
	if err == nil {
		err = unix.Bind(fd, at)
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// tcp opens a listener of all addresses of a port.
func tcp(port uint16) (int, error) {
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	var at unix.Sockaddr = &unix.SockaddrInet6{Port: int(port)}
	if err == nil {
		err = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0)
	} else {
		fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		at = &unix.SockaddrInet4{Port: int(port)}
	}
	if err == nil {
		err = unix.Bind(fd, at)
	}
	if err == nil {
		err = unix.Listen(fd, 4096)
	}
	if err != nil && fd >= 0 {
		unix.Close(fd)
	}
	return fd, err
}
