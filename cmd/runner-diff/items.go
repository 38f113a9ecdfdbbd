package main

import (
	"hash/maphash"
	"iter"
	"slices"
	"strings"
	"sync"
)

// items is a set of items in little memory: they are in blocks, found by a table of their places, and their texts
// are in blocks too. The zero value is empty.
type items struct {
	blocks [][]item
	count  int
	table  []slot // by hash
	texts  texts
	tallys []tally // a block of which each item takes its first one
}

// slot has the place of an item, from 1, and a part of its hash, so that few keys are compared.
type slot struct{ place, hash uint32 }

const (
	blockItems = 1 << 10
	blockBytes = 64 << 10
)

var seed = maphash.MakeSeed()

func (k *key) hash() uint64 {
	h := maphash.String(seed, k.value) ^ uint64(k.kind)*0x9e3779b97f4a7c15
	if k.how != "" {
		h += maphash.String(seed, k.how)
	}
	return h
}

func (t *items) at(place int) *item { return &t.blocks[place/blockItems][place%blockItems] }

// slot is the one that a key of this hash has, or would have.
func (t *items) slot(k *key, hash uint64) *slot {
	mask := len(t.table) - 1
	for at := int(hash>>32) & mask; ; at = (at + 1) & mask {
		s := &t.table[at]
		if s.place == 0 || s.hash == uint32(hash) && t.at(int(s.place-1)).key == *k {
			return s
		}
	}
}

// get is the item of a key, or nil.
func (t *items) get(k key) *item {
	if t.count == 0 {
		return nil
	}
	if s := t.slot(&k, k.hash()); s.place > 0 {
		return t.at(int(s.place - 1))
	}
	return nil
}

// add makes the item of a key that has none. It keeps a copy of the key's value.
func (t *items) add(k key) *item {
	if 2*(t.count+1) > len(t.table) {
		t.grow()
	}
	hash := k.hash()
	s := t.slot(&k, hash)
	if t.count%blockItems == 0 {
		t.blocks = append(t.blocks, make([]item, blockItems))
	}
	i := t.at(t.count)
	i.key = key{k.kind, t.texts.keep(k.value), k.how}
	t.count++
	*s = slot{uint32(t.count), uint32(hash)}
	return i
}

func (t *items) grow() {
	t.table = make([]slot, max(64, 2*len(t.table)))
	for place := range t.count {
		k := &t.at(place).key
		hash := k.hash()
		*t.slot(k, hash) = slot{uint32(place + 1), uint32(hash)}
	}
}

// first gives an item the room for its first tally.
func (t *items) first(i *item) {
	if len(t.tallys) == 0 {
		t.tallys = make([]tally, blockItems)
	}
	i.who, t.tallys = t.tallys[:0:1], t.tallys[1:]
}

// all are the items, in no order that means something.
func (t *items) all() iter.Seq[*item] {
	return func(yield func(*item) bool) {
		for place := range t.count {
			if !yield(t.at(place)) {
				return
			}
		}
	}
}

// sorted are the items in their order.
func (t *items) sorted() []*item {
	list := make([]*item, 0, t.count)
	inOrder := true
	for i := range t.all() {
		inOrder = inOrder && (len(list) == 0 || compareKeys(&list[len(list)-1].key, &i.key) < 0)
		list = append(list, i)
	}
	if !inOrder {
		sortItems(list)
	}
	return list
}

func compareItems(a, b *item) int { return compareKeys(&a.key, &b.key) }

// sortItems sorts two halves at the same time.
func sortItems(list []*item) {
	low, high := list[:len(list)/2], slices.Clone(list[len(list)/2:])
	var wait sync.WaitGroup
	wait.Go(func() { slices.SortFunc(high, compareItems) })
	slices.SortFunc(low, compareItems)
	wait.Wait()
	for to := len(list) - 1; len(high) > 0; to-- { // from the end, so that nothing is in the way
		if n := len(low) - 1; n >= 0 && compareItems(low[n], high[len(high)-1]) > 0 {
			list[to], low = low[n], low[:n]
		} else {
			list[to], high = high[len(high)-1], high[:len(high)-1]
		}
	}
}

// texts keeps texts in blocks.
type texts struct{ block strings.Builder }

func (t *texts) keep(s string) string {
	if len(s) > blockBytes/8 {
		return strings.Clone(s)
	}
	if t.block.Cap()-t.block.Len() < len(s) {
		t.block = strings.Builder{}
		t.block.Grow(blockBytes)
	}
	from := t.block.Len()
	t.block.WriteString(s)
	return t.block.String()[from:]
}
