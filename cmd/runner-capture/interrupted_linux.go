package main

import (
	"cmp"
	"maps"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/bpf"
	"github.com/runner-evidence/runner/schemas"
)

// interrupted are calls that a signal interrupted, by thread. The next record of the thread
// tells whether the program was told so. If not, the call starts over by itself.
type interrupted map[uint32]schemas.RawEvent

func (i *interrupted) keep(e *schemas.RawEvent) {
	if *i == nil {
		*i = interrupted{}
	}
	(*i)[e.TID] = keepEvent(e, bpf.Decoded{}).e
}

// settle writes the interrupted call that waits for this record of its thread. With eintr,
// the record is that call's outcome.
func (v *events) settle(next *schemas.RawEvent, eintr bool) error {
	if len(v.interrupted) == 0 {
		return nil
	}
	tid := next.TID
	if next.Has&schemas.HasOldTID != 0 { // the thread has taken over another number
		tid = next.OldTID
	}
	for _, tid := range slices.Compact([]uint32{tid, next.TID}) {
		e, there := v.interrupted[tid]
		if !there {
			continue
		}
		delete(v.interrupted, tid)
		if eintr && e.Op == next.Op {
			e.Ret, e.Has = -int64(unix.EINTR), e.Has|schemas.HasRet
		}
		if err := v.write(&e); err != nil {
			return err
		}
	}
	return nil
}

// settleAll writes those for which no record came, in the order of their time.
func (v *events) settleAll() error {
	list := slices.SortedFunc(maps.Values(v.interrupted), func(a, b schemas.RawEvent) int {
		return cmp.Or(cmp.Compare(a.KtimeNS, b.KtimeNS), cmp.Compare(a.TID, b.TID))
	})
	clear(v.interrupted)
	for i := range list {
		if err := v.write(&list[i]); err != nil {
			return err
		}
	}
	return nil
}
