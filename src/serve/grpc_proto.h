/* SPDX-License-Identifier: Apache-2.0
   grpc_proto: what this server speaks over gRPC, for clients that ask: the texts of src/serve/proto, read
   once into descriptors as protobuf has them. Of proto3's language it knows what those texts use: messages,
   enums, oneofs, maps, services. */
#ifndef HONE_SERVE_GRPC_PROTO_H
#define HONE_SERVE_GRPC_PROTO_H
#include "serve/grpc_wire.h"

typedef enum {
    HONE_PROTO_MESSAGE,
    HONE_PROTO_ENUM,
    HONE_PROTO_SERVICE,
    HONE_PROTO_PART /* a field, a method */
} hone_grpc_kind;
typedef struct {
    char *name; /* "inference.ModelInferRequest" */
    hone_grpc_kind kind;
    int file;
} hone_grpc_symbol;
typedef struct {
    char name[64];             /* "grpc/health/v1/health.proto" */
    hone_serve_out descriptor; /* a FileDescriptorProto */
} hone_grpc_file;
enum { HONE_GRPC_FILES = 4 };
typedef struct {
    hone_grpc_file file[HONE_GRPC_FILES];
    hone_grpc_symbol *symbol;
    int symbols, room;
} hone_grpc_protos;
const hone_grpc_protos *hone_grpc_protos_get(void); /* NULL: no memory */
#endif
