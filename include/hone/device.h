/* SPDX-License-Identifier: Apache-2.0
   device.h: a device of your own, for models to run on: a table of functions, compiled against the installed
   headers alone. A program adds it by hone_device_add; a file that exports `hone_plugin`, which adds it, is
   loaded by hone_plugin_load or `hone … --plugin FILE`. The rules at the top of hone.h hold here too.

   What must be written: memory, copies, a queue, and work. Work is one node of a model, or a fused group, on
   tensors that lie in the device's memory. Its meaning is a tensor program; hone_work_define computes it on
   the calling thread wherever the device's memory can be read by the host, so a device is complete before it
   has a kernel. What a device refuses runs on the CPU, and Hone puts copies at the borders. */
#ifndef HONE_DEVICE_H
#define HONE_DEVICE_H
#include "hone/hone.h"
#ifdef __cplusplus
extern "C" {
#endif
#define HONE_DEVICE_ABI 1 /* of this header; a table of another one is refused */

/* ---- work ---------------------------------------------------------------------------------------------- */
typedef struct hone_work hone_work;
typedef enum {
    HONE_WORK_IN,
    HONE_WORK_OUT,
    HONE_WORK_TEMP /* room for what is between; holds nothing before or after */
} hone_work_role;
typedef struct { /* as the program sees it: dims may be split, permuted, or left out where they are 1 */
    hone_work_role role;
    hone_dtype dtype;
    int rank;
    const int64_t *dims; /* NULL: not known yet */
    /* in elements; 0 where one element serves a whole dim, and less than 0 where it is walked backwards */
    const int64_t *strides;
} hone_work_tensor;
HONE_API const char *hone_work_op(const hone_work *);   /* "Conv"; of a fused group: of its last node */
HONE_API const char *hone_work_node(const hone_work *); /* its name, for messages */
HONE_API int hone_work_tensors(const hone_work *);
/* lives as long as the work */
HONE_API void hone_work_tensor_of(const hone_work *, int k, hone_work_tensor *out);
/* The definition: reads and writes at[k], where element 0 of tensor k is now. Fails, with the node's name,
   for what its data make impossible (an index outside). */
HONE_API hone_status hone_work_define(const hone_work *, void *const *at);

/* ---- the table ----------------------------------------------------------------------------------------- */
/* A tensor's element 0: a memory that alloc gave, and a byte in it. */
typedef struct {
    void *memory;
    int64_t offset;
} hone_device_operand;
/* All may be called from any thread; a queue is used by one thread at a time. Functions that fail return
   hone_device_fail(…). */
typedef struct {
    int abi;          /* HONE_DEVICE_ABI */
    int count;        /* how many of them there are: NAME:0 … */
    const char *name; /* up to 32 of a-z, 0-9 and _ */
    void *self;       /* whatever the functions want to be given */
    size_t alignment; /* of tensors in a memory, a power of 2; 0: 64 */
    size_t largest;   /* bytes of one memory; 0: what there is */
    /* Why it cannot run such work, in a few words that live for ever; NULL: it can. Identity, of any type but
       strings, must be possible. May be NULL: it can run all. */
    const char *(*refuses)(void *self, const char *op, const hone_work_tensor *, int n);
    /* Memory: a handle, not NULL, that need be no address. free: nothing that is under way touches it. */
    hone_status (*alloc)(void *self, int number, size_t bytes, void **memory);
    void (*free)(void *self, int number, void *memory);
    /* A queue does what it is given in that order, and may do it later. */
    hone_status (*open)(void *self, int number, void **queue);
    void (*close)(void *queue);
    /* copy_in comes back when `from` may change again, copy_out when all bytes are there. */
    hone_status (*copy_in)(void *queue, void *to, int64_t at, const void *from, size_t bytes);
    hone_status (*copy_out)(void *queue, void *to, void *from, int64_t at, size_t bytes);
    /* Between the memories of two queues of this table, in the order of both; the two may be one queue. May
       be NULL: bytes go through the host. */
    hone_status (*copy_peer)(void *to_queue, void *to, int64_t at, void *from_queue, void *from,
                             int64_t from_at, size_t bytes);
    /* One operand a tensor of the work; they are gone when it returns, the work is there until the queue was
       waited for. */
    hone_status (*enqueue)(void *queue, const hone_work *, const hone_device_operand *);
    /* All that the queue was given is done; where something failed, the first failure, which is forgotten
       then. */
    hone_status (*wait)(void *queue);
    /* A bit (1 << hone_dtype) for each type whose convolutions want their channels last in memory (NHWC),
       with all that is made of their results element by element. 0: NCHW */
    uint64_t channels_last;
    /* DLPack's number for its kind of memory, of which a handle is then the data pointer: kDLExtDev is 12. 0:
       its tensors cannot be shared by DLPack */
    int64_t dlpack;
    /* All that somebody else's stream was given so far is done; the number is the one that came with a DLPack
       tensor. NULL: there are no streams. */
    hone_status (*await)(void *self, int number, int64_t stream);
    void *reserved[5]; /* NULL */
} hone_device_table;

/* Adds a device for the rest of the process: the table is copied, and name and self must live on. Fails:
   BAD_INPUT for a name that is taken, another ABI, or functions that are missing. */
HONE_API hone_status hone_device_add(const hone_device_table *);
/* Sets the calling thread's message, one line, and returns the status. */
HONE_API hone_status hone_device_fail(hone_status, const char *message);

/* Loads a file that exports `hone_status hone_plugin(void)` and calls that, which adds devices or ops. It
   stays until the process ends. A program that is linked with libhone.a must export Hone's names to it
   (-rdynamic). Fails: IO where it cannot be loaded; as hone_plugin does. */
HONE_API hone_status hone_plugin_load(const char *file);
#ifdef __cplusplus
}
#endif
#endif
