/* SPDX-License-Identifier: Apache-2.0
   triton_onnx: ONNX Runtime as a back end of Triton, for models of one input and one output of floats: what
   bench/serve.py compares with, as PyPI's Triton comes without one. One session a model, one thread a run,
   as many runs at once as the config has instances; buffers are used where Triton has them. Built by
   serve.py against the headers of Triton's core and of ONNX Runtime. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The headers are written for C++, where a struct is a type by itself. */
#include <stdbool.h>
#define TYPE(name) typedef struct name name;
TYPE(TRITONBACKEND_Backend)
TYPE(TRITONBACKEND_BackendAttribute)
TYPE(TRITONBACKEND_Batcher)
TYPE(TRITONBACKEND_Input)
TYPE(TRITONBACKEND_MemoryManager)
TYPE(TRITONBACKEND_Model)
TYPE(TRITONBACKEND_ModelInstance)
TYPE(TRITONBACKEND_ModelInstanceResponseStatistics)
TYPE(TRITONBACKEND_Output)
TYPE(TRITONBACKEND_Request)
TYPE(TRITONBACKEND_Response)
TYPE(TRITONBACKEND_ResponseFactory)
TYPE(TRITONBACKEND_State)
TYPE(TRITONSERVER_BufferAttributes)
TYPE(TRITONSERVER_Error)
TYPE(TRITONSERVER_InferenceRequest)
TYPE(TRITONSERVER_InferenceResponse)
TYPE(TRITONSERVER_InferenceTrace)
TYPE(TRITONSERVER_Message)
TYPE(TRITONSERVER_Metric)
TYPE(TRITONSERVER_MetricArgs)
TYPE(TRITONSERVER_MetricFamily)
TYPE(TRITONSERVER_Metrics)
TYPE(TRITONSERVER_Parameter)
TYPE(TRITONSERVER_ResponseAllocator)
TYPE(TRITONSERVER_Server)
TYPE(TRITONSERVER_ServerOptions)
#include "onnxruntime_c_api.h"
#include "triton/core/tritonbackend.h"

#define EXPORT __attribute__((visibility("default")))
enum { ORT_VERSION = 18, RANK_MAX = 8 };

static const OrtApi *ort;
static OrtEnv *env;
static OrtMemoryInfo *host;
typedef struct {
    OrtSession *session;
    char *in, *out;
} model;

static TRITONSERVER_Error *wrong(OrtStatus *s) {
    TRITONSERVER_Error *e = TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL, ort->GetErrorMessage(s));
    ort->ReleaseStatus(s);
    return e;
}
#define TRY(call)                 \
    do {                          \
        OrtStatus *s_ = (call);   \
        if (s_) return wrong(s_); \
    } while (0)

EXPORT TRITONSERVER_Error *TRITONBACKEND_Initialize(TRITONBACKEND_Backend *b) {
    ort = OrtGetApiBase()->GetApi(ORT_VERSION);
    if (!ort) return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNSUPPORTED, "ONNX Runtime is too old");
    TRY(ort->CreateEnv(ORT_LOGGING_LEVEL_ERROR, "bench", &env));
    TRY(ort->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &host));
    return NULL;
}

EXPORT TRITONSERVER_Error *TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model *m) {
    TRITONBACKEND_ArtifactType type;
    const char *folder;
    char path[1024];
    OrtSessionOptions *o;
    OrtAllocator *a;
    model *own = calloc(1, sizeof *own);
    TRITONBACKEND_ModelRepository(m, &type, &folder);
    snprintf(path, sizeof path, "%s/1/model.onnx", folder);
    TRY(ort->CreateSessionOptions(&o));
    TRY(ort->SetIntraOpNumThreads(o, 1));
    TRY(ort->SetSessionGraphOptimizationLevel(o, ORT_ENABLE_ALL));
    TRY(ort->CreateSession(env, path, o, &own->session));
    TRY(ort->GetAllocatorWithDefaultOptions(&a));
    TRY(ort->SessionGetInputName(own->session, 0, a, &own->in));
    TRY(ort->SessionGetOutputName(own->session, 0, a, &own->out));
    return TRITONBACKEND_ModelSetState(m, own);
}

static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static TRITONSERVER_Error *answer(const model *own, TRITONBACKEND_Request *r, uint64_t *begin,
                                  uint64_t *end) {
    TRITONBACKEND_Input *input;
    TRITONBACKEND_Output *output;
    TRITONBACKEND_Response *response;
    const char *name;
    TRITONSERVER_DataType type;
    const int64_t *shape;
    int64_t dims[RANK_MAX], id = 0;
    uint32_t rank, pieces;
    uint64_t bytes, piece;
    const void *at;
    TRITONSERVER_MemoryType kind = TRITONSERVER_MEMORY_CPU;
    OrtValue *in = NULL, *out = NULL;
    OrtTensorTypeAndShapeInfo *info;
    size_t n, elements;
    void *from, *to;
    TRITONSERVER_Error *e = TRITONBACKEND_RequestInputByIndex(r, 0, &input);
    if (!e) e = TRITONBACKEND_InputProperties(input, &name, &type, &shape, &rank, &bytes, &pieces);
    if (!e) e = TRITONBACKEND_InputBuffer(input, 0, &at, &piece, &kind, &id);
    if (e) return e;
    if (pieces != 1) return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNSUPPORTED, "an input in pieces");
    *begin = now();
    TRY(ort->CreateTensorWithDataAsOrtValue(host, (void *)(uintptr_t)at, bytes, shape, rank,
                                            ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &in));
    OrtStatus *s = ort->Run(own->session, NULL, (const char *const *)&own->in, (const OrtValue *const *)&in,
                            1, (const char *const *)&own->out, 1, &out);
    ort->ReleaseValue(in);
    *end = now();
    if (s) return wrong(s);
    TRY(ort->GetTensorTypeAndShape(out, &info));
    TRY(ort->GetDimensionsCount(info, &n));
    TRY(ort->GetDimensions(info, dims, n));
    TRY(ort->GetTensorShapeElementCount(info, &elements));
    ort->ReleaseTensorTypeAndShapeInfo(info);
    TRY(ort->GetTensorMutableData(out, &from));
    e = TRITONBACKEND_ResponseNew(&response, r);
    if (!e)
        e = TRITONBACKEND_ResponseOutput(response, &output, own->out, TRITONSERVER_TYPE_FP32, dims,
                                         (uint32_t)n);
    kind = TRITONSERVER_MEMORY_CPU, id = 0;
    if (!e) e = TRITONBACKEND_OutputBuffer(output, &to, elements * sizeof(float), &kind, &id);
    if (!e) memcpy(to, from, elements * sizeof(float));
    ort->ReleaseValue(out);
    return e ? e : TRITONBACKEND_ResponseSend(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, NULL);
}

EXPORT TRITONSERVER_Error *TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *i,
                                                              TRITONBACKEND_Request **request,
                                                              const uint32_t n) {
    TRITONBACKEND_Model *m;
    void *own;
    TRITONBACKEND_ModelInstanceModel(i, &m);
    TRITONBACKEND_ModelState(m, &own);
    for (uint32_t k = 0; k < n; k++) {
        uint64_t from = now(), begin = from, end = from;
        TRITONSERVER_Error *e = answer(own, request[k], &begin, &end);
        TRITONBACKEND_ModelInstanceReportStatistics(i, request[k], !e, from, begin, end, now());
        if (e) {
            TRITONBACKEND_Response *failed;
            if (!TRITONBACKEND_ResponseNew(&failed, request[k]))
                TRITONBACKEND_ResponseSend(failed, TRITONSERVER_RESPONSE_COMPLETE_FINAL, e);
            TRITONSERVER_ErrorDelete(e);
        }
        TRITONBACKEND_ModelInstanceReportBatchStatistics(i, 1, from, begin, end, now());
        TRITONBACKEND_RequestRelease(request[k], TRITONSERVER_REQUEST_RELEASE_ALL);
    }
    return NULL;
}
