package main

const largeFile = 0o400000 // O_LARGEFILE, which Go calls 0 on 64-bit machines
