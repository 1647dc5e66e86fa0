/* SPDX-License-Identifier: Apache-2.0
   table: the networks of the zoo, a row each, and how a row becomes a graph. */
#include "zoo/build.h"
#include "zoo/nets.h"

#define PICTURE " classes=1000 bn=0 dynamic=0 seed=0"
const hone_zoo_model hone_zoo_models[] = {
    {"resnet18", "pictures to classes: residual blocks", hone_zoo_resnet, &hone_zoo_resnet18_plan,
     "batch=1 image=224" PICTURE, 11689512},
    {"resnet50", "pictures to classes: residual bottlenecks", hone_zoo_resnet, &hone_zoo_resnet50_plan,
     "batch=1 image=224" PICTURE, 25557032},
    {"mobilenet_v2", "pictures to classes: inverted residuals", hone_zoo_mobile, &hone_zoo_mobilenet_v2_plan,
     "batch=1 image=224" PICTURE, 3504872},
    {"mobilenet_v3_small", "pictures to classes: inverted residuals, squeeze-and-excite", hone_zoo_mobile,
     &hone_zoo_mobilenet_v3_small_plan, "batch=1 image=224" PICTURE, 2542856},
    {"efficientnet_b0", "pictures to classes: inverted residuals, squeeze-and-excite", hone_zoo_mobile,
     &hone_zoo_efficientnet_b0_plan, "batch=1 image=224" PICTURE, 5288548},
    {"squeezenet1_1", "pictures to classes: fire modules", hone_zoo_squeezenet, NULL,
     "batch=1 image=224 classes=1000 dynamic=0 seed=0", 1235496},
    {"densenet121", "pictures to classes: every layer reads all before it", hone_zoo_densenet, NULL,
     "batch=1 image=224" PICTURE, 7978856},
    {"vgg16", "pictures to classes: plain convolutions", hone_zoo_vgg, hone_zoo_vgg16_plan,
     "batch=1 image=224 classes=1000 dynamic=0 seed=0", 138357544},
    {"inception", "pictures to classes: Inception v3", hone_zoo_inception, NULL,
     "batch=1 image=299:75-4096" PICTURE, 23834568},
    {"shufflenet_v2", "pictures to classes: shuffled channels, x1.0", hone_zoo_shufflenet, NULL,
     "batch=1 image=224" PICTURE, 2278604},
    {"unet", "pictures to masks: down and up again", hone_zoo_unet, NULL,
     "batch=1 image=256:16-4096/16 classes=2 bn=0 dynamic=0 seed=0", 31037698},
    {"yolo", "pictures to boxes: the size and shape of YOLOv8n", hone_zoo_yolo, NULL,
     "batch=1 image=640:32-4096/32 classes=80 bn=0 dynamic=0 seed=0", 3157200},
    {"vit_b16", "pictures to classes: a transformer over patches", hone_zoo_vit, NULL,
     "batch=1 image=224:16-4096/16 layers=12 classes=1000 dynamic=0 seed=0", 86567656},
    {"bert_base", "tokens to vectors: encoder, 12 layers", hone_zoo_bert, NULL,
     "batch=1 seq=128:1-512 layers=12 vocab=30522 dynamic=0 seed=0", 109482240},
    {"distilbert", "tokens to vectors: encoder, 6 layers", hone_zoo_distilbert, NULL,
     "batch=1 seq=128:1-512 layers=6 vocab=30522 dynamic=0 seed=0", 66362880},
    {"gpt2", "tokens to the next token: decoder, 12 layers", hone_zoo_gpt2, NULL,
     "batch=1 seq=128:1-1024 past=0:0-1023 cache=0 layers=12 vocab=50257 dynamic=0 seed=0", 124439808},
    {"gpt2_cache", "the same, one token at a time, with its past", hone_zoo_gpt2, NULL,
     "batch=1 seq=1:1-1024 past=128:0-1023 cache=1 layers=12 vocab=50257 dynamic=0 seed=0", 124439808},
    {"llama", "tokens to the next token: GQA, RoPE, SwiGLU, RMS norms", hone_zoo_llama, NULL,
     "batch=1 seq=128:1-4096 past=0:0-4095 cache=0 layers=8 dim=512 heads=8 kv=4 hidden=1376 vocab=32000 "
     "dynamic=0 seed=0",
     0},
    {"llama_cache", "the same, one token at a time, with its past", hone_zoo_llama, NULL,
     "batch=1 seq=1:1-4096 past=128:0-4095 cache=1 layers=8 dim=512 heads=8 kv=4 hidden=1376 vocab=32000 "
     "dynamic=0 seed=0",
     0},
    {"whisper", "sound to vectors: the encoder of whisper-tiny", hone_zoo_whisper, NULL,
     "batch=1 seq=1500:1-1500 layers=4 dim=384 heads=6 dynamic=0 seed=0", 8208384},
    {"lstm", "tokens to classes: two layers of LSTM", hone_zoo_recurrent, "LSTM",
     "batch=1 seq=64:1-4096 layers=2 bi=0 dim=128 hidden=256:1-4096 vocab=10000 classes=10 dynamic=0 seed=0",
     0},
    {"bilstm", "the same, both ways", hone_zoo_recurrent, "LSTM",
     "batch=1 seq=64:1-4096 layers=2 bi=1 dim=128 hidden=256:1-4096 vocab=10000 classes=10 dynamic=0 seed=0",
     0},
    {"gru", "tokens to classes: two layers of GRU", hone_zoo_recurrent, "GRU",
     "batch=1 seq=64:1-4096 layers=2 bi=0 dim=128 hidden=256:1-4096 vocab=10000 classes=10 dynamic=0 seed=0",
     0},
    {"dlrm", "numbers and categories to a probability", hone_zoo_dlrm, NULL,
     "batch=128 rows=10000 dynamic=0 seed=0", 0},
    {0}};

static void end(hone_zoo *z) {
    if (z->instances) hone_instances_destroy(z->instances);
    hone_graph_destroy(z->g);
}

static hone_status build(const char *spec, const hone_library *lib, hone_zoo *z) {
    const hone_zoo_model *m;
    HONE_TRY(hone_zoo_read(spec, &m, &z->o));
    z->lib = lib;
    z->instances = hone_instances_create();
    if (!z->instances) return hone_fail(HONE_NO_MEMORY, "no memory for the network");
    HONE_TRY(hone_graph_create(m->name, &z->g));
    z->g->opset = 18;
    bool dynamic = hone_zoo_option(z, HONE_ZOO_DYNAMIC) != 0;
    z->batch = dynamic ? hone_dim_symbol(z->g->dims, "batch") : hone_zoo_option(z, HONE_ZOO_BATCH);
    z->seq = dynamic ? hone_dim_symbol(z->g->dims, "seq") : hone_zoo_option(z, HONE_ZOO_SEQ);
    m->build(z, m->plan);
    if (z->status) return z->status;
    hone_graph_index(z->g);
    /* where weights have no numbers, nothing makes them */
    return z->measure ? HONE_OK : hone_graph_verify(z->g);
}

hone_status hone_zoo_graph(const char *spec, const hone_library *lib, hone_graph **out) {
    hone_zoo z = {0};
    hone_status s = build(spec, lib, &z);
    if (!s) *out = z.g, z.g = NULL;
    end(&z);
    return s;
}

/* As JSON: name, dtype and dims, where a number is one, and else a text. */
static void put_input(const hone_graph *g, hone_vid id, int k, hone_text *out) {
    const hone_var *v = g->var.at + id;
    hone_text_put(out, "%s{\"name\": ", k ? ", " : "");
    hone_text_json(out, v->name);
    hone_text_put(out, ", \"dtype\": \"%s\", \"dims\": [", hone_dtypes[v->dtype].name);
    for (int d = 0; d < v->rank; d++) {
        const char *quote = hone_dim_is_number(v->dim[d]) ? "" : "\"";
        hone_text_put(out, "%s%s", d ? ", " : "", quote);
        hone_dim_print(g->dims, v->dim[d], out);
        hone_text_put(out, "%s", quote);
    }
    hone_text_put(out, "]}");
}
hone_status hone_zoo_measure(const char *spec, const hone_library *lib, hone_zoo_size *out,
                             hone_text *inputs) {
    hone_zoo z = {.measure = true};
    hone_status s = build(spec, lib, &z);
    if (!s) {
        hone_counts c = hone_graph_counts(z.g, NULL);
        for (int k = 0; k < z.g->in.n; k++) put_input(z.g, z.g->in.at[k], k, inputs);
        *out = (hone_zoo_size){z.parameters, z.weight_bytes, z.g->node.n, c.known ? c.flops : 0};
    }
    end(&z);
    return s;
}
