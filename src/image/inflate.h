/* SPDX-License-Identifier: Apache-2.0
   inflate: RFC 1950 and 1951, from bytes to bytes. Checks no checksum: what holds the stream has one of its own, or says its size. */
#ifndef HONE_IMAGE_INFLATE_H
#define HONE_IMAGE_INFLATE_H
#include "base/mem.h"

/* The largest factor by which a stream can grow (258 bytes from two bits): more is asked of it in vain. */
#define HONE_INFLATE_MOST 1032

/* A zlib stream into at most `room` bytes; *made says how many. Ends in good order when the room is full, whatever may follow. */
hone_status hone_inflate(const uint8_t *in, size_t n, uint8_t *out, size_t room, size_t *made) HONE_CHECKED;
#endif
