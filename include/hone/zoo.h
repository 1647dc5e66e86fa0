/* SPDX-License-Identifier: Apache-2.0
   zoo.h: well-known networks with weights from a seed, made by the library: nothing is downloaded, nothing is
   trained.

   A spec is "NAME" or "NAME?key=value&key=value", with or without "zoo:" in front. hone_model_load takes
   "zoo:…" where a path may stand. */
#ifndef HONE_ZOO_H
#define HONE_ZOO_H
#include "hone/hone.h"
#ifdef __cplusplus
extern "C" {
#endif
/* What there is. In: a spec, or NULL for all networks with their own options. Out: JSON, an array of objects:
   name, what, options (name, default, lowest, highest, step), inputs (name, dtype, dims), parameters (as
   published), weight_bytes, nodes, flops (null where a dim is free); freed with hone_text_release. Quick: no
   weight is made. Fails: BAD_INPUT with a line that lists the choices. */
HONE_API hone_status hone_zoo_report(const char *spec, char **out);
/* The network as a standard ONNX file, as an exporter would write it: no pass has run. In: a spec, a path
   that may be written. Fails: BAD_INPUT, IO; then no file is left. */
HONE_API hone_status hone_zoo_write(const char *spec, const char *path);
#ifdef __cplusplus
}
#endif
#endif
