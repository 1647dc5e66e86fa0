/* SPDX-License-Identifier: Apache-2.0
   mutate: changes to ONNX models that keep the wire format whole, so that a fuzzer gets past the first length
   check. */
#ifndef HONE_FUZZ_MUTATE_H
#define HONE_FUZZ_MUTATE_H
#include <stddef.h>
#include <stdint.h>

/* In place; returns the new size. What is no message is changed as plain bytes. */
size_t mutate_model(uint8_t *data, size_t size, size_t room, unsigned seed);
/* Nodes, initializers and the like of both graphs in one. 0: they could not be joined. */
size_t mutate_join(const uint8_t *a, size_t na, const uint8_t *b, size_t nb, uint8_t *out, size_t room,
                   unsigned seed);
#endif
