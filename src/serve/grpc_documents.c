/* SPDX-License-Identifier: Apache-2.0
   grpc_documents: the messages that say what the core's documents say, as tables: JSON's key, the field's
   number, what it is. Numbers are those of grpc_service.proto and model_config.proto. */
#include <stddef.h>

#include "serve/grpc.h"

#define TEXT HONE_SERVE_AS_TEXT
#define NUMBER HONE_SERVE_AS_NUMBER
#define MESSAGE HONE_SERVE_AS_MESSAGE
#define MAP HONE_SERVE_AS_MAP
#define WORD HONE_SERVE_AS_WORD

/* ---- metadata ---- */
static const hone_serve_row tensor[] = {
    {"name", 1, TEXT, 0, 0}, {"datatype", 2, TEXT, 0, 0}, {"shape", 3, NUMBER, 0, 0}, {0}};
const hone_serve_row hone_serve_metadata_rows[] = {
    {"name", 1, TEXT, 0, 0},           {"versions", 2, TEXT, 0, 0},        {"platform", 3, TEXT, 0, 0},
    {"inputs", 4, MESSAGE, tensor, 0}, {"outputs", 5, MESSAGE, tensor, 0}, {0}};

/* ---- the repository's index ---- */
static const hone_serve_row index_model[] = {{"name", 1, TEXT, 0, 0},
                                             {"version", 2, TEXT, 0, 0},
                                             {"state", 3, TEXT, 0, 0},
                                             {"reason", 4, TEXT, 0, 0},
                                             {0}};
const hone_serve_row hone_serve_index_rows[] = {{"models", 1, MESSAGE, index_model, 0}, {0}};

/* ---- regions ---- */
static const hone_serve_row region[] = {{"name", 1, TEXT, 0, 0},
                                        {"key", 2, TEXT, 0, 0},
                                        {"offset", 3, NUMBER, 0, 0},
                                        {"byte_size", 4, NUMBER, 0, 0},
                                        {0}};
const hone_serve_row hone_serve_regions_rows[] = {{"regions", 1, MAP, region, 0}, {0}};
static const hone_serve_row cuda_region[] = {
    {"name", 1, TEXT, 0, 0}, {"device_id", 2, NUMBER, 0, 0}, {"byte_size", 3, NUMBER, 0, 0}, {0}};
const hone_serve_row hone_serve_cuda_regions_rows[] = {{"regions", 1, MAP, cuda_region, 0}, {0}};

/* ---- statistics ---- */
static const hone_serve_row duration[] = {{"count", 1, NUMBER, 0, 0}, {"ns", 2, NUMBER, 0, 0}, {0}};
static const hone_serve_row inference[] = {{"success", 1, MESSAGE, duration, 0},
                                           {"fail", 2, MESSAGE, duration, 0},
                                           {"queue", 3, MESSAGE, duration, 0},
                                           {"compute_input", 4, MESSAGE, duration, 0},
                                           {"compute_infer", 5, MESSAGE, duration, 0},
                                           {"compute_output", 6, MESSAGE, duration, 0},
                                           {"cache_hit", 7, MESSAGE, duration, 0},
                                           {"cache_miss", 8, MESSAGE, duration, 0},
                                           {0}};
static const hone_serve_row batch[] = {{"batch_size", 1, NUMBER, 0, 0},
                                       {"compute_input", 2, MESSAGE, duration, 0},
                                       {"compute_infer", 3, MESSAGE, duration, 0},
                                       {"compute_output", 4, MESSAGE, duration, 0},
                                       {0}};
static const hone_serve_row memory[] = {
    {"type", 1, TEXT, 0, 0}, {"id", 2, NUMBER, 0, 0}, {"byte_size", 3, NUMBER, 0, 0}, {0}};
static const hone_serve_row model_statistics[] = {{"name", 1, TEXT, 0, 0},
                                                  {"version", 2, TEXT, 0, 0},
                                                  {"last_inference", 3, NUMBER, 0, 0},
                                                  {"inference_count", 4, NUMBER, 0, 0},
                                                  {"execution_count", 5, NUMBER, 0, 0},
                                                  {"inference_stats", 6, MESSAGE, inference, 0},
                                                  {"batch_stats", 7, MESSAGE, batch, 0},
                                                  {"memory_usage", 8, MESSAGE, memory, 0},
                                                  {0}};
const hone_serve_row hone_serve_statistics_rows[] = {{"model_stats", 1, MESSAGE, model_statistics, 0}, {0}};

/* ---- config ---- */
static const char *const types[] = {"TYPE_INVALID", "TYPE_BOOL",   "TYPE_UINT8", "TYPE_UINT16",
                                    "TYPE_UINT32",  "TYPE_UINT64", "TYPE_INT8",  "TYPE_INT16",
                                    "TYPE_INT32",   "TYPE_INT64",  "TYPE_FP16",  "TYPE_FP32",
                                    "TYPE_FP64",    "TYPE_STRING", "TYPE_BF16",  NULL};
static const char *const formats[] = {"FORMAT_NONE", "FORMAT_NHWC", "FORMAT_NCHW", NULL};
static const char *const kinds[] = {"KIND_AUTO", "KIND_GPU", "KIND_CPU", "KIND_MODEL", NULL};
static const char *const actions[] = {"REJECT", "DELAY", NULL};
static const hone_serve_row reshape[] = {{"shape", 1, NUMBER, 0, 0}, {0}};
static const hone_serve_row input[] = {{"name", 1, TEXT, 0, 0},
                                       {"data_type", 2, WORD, 0, types},
                                       {"format", 3, WORD, 0, formats},
                                       {"dims", 4, NUMBER, 0, 0},
                                       {"reshape", 5, MESSAGE, reshape, 0},
                                       {"is_shape_tensor", 6, NUMBER, 0, 0},
                                       {"allow_ragged_batch", 7, NUMBER, 0, 0},
                                       {"optional", 8, NUMBER, 0, 0},
                                       {0}};
static const hone_serve_row output[] = {{"name", 1, TEXT, 0, 0},
                                        {"data_type", 2, WORD, 0, types},
                                        {"dims", 3, NUMBER, 0, 0},
                                        {"label_filename", 4, TEXT, 0, 0},
                                        {"reshape", 5, MESSAGE, reshape, 0},
                                        {"is_shape_tensor", 6, NUMBER, 0, 0},
                                        {0}};
static const hone_serve_row group[] = {
    {"name", 1, TEXT, 0, 0}, {"count", 2, NUMBER, 0, 0}, {"kind", 4, WORD, 0, kinds}, {0}};
static const hone_serve_row nothing[] = {{0}};
static const hone_serve_row latest[] = {{"num_versions", 1, NUMBER, 0, 0}, {0}};
static const hone_serve_row specific[] = {{"versions", 1, NUMBER, 0, 0}, {0}};
static const hone_serve_row policy[] = {{"latest", 1, MESSAGE, latest, 0},
                                        {"all", 2, MESSAGE, nothing, 0},
                                        {"specific", 3, MESSAGE, specific, 0},
                                        {0}};
static const hone_serve_row queue[] = {{"timeout_action", 1, WORD, 0, actions},
                                       {"default_timeout_microseconds", 2, NUMBER, 0, 0},
                                       {"allow_timeout_override", 3, NUMBER, 0, 0},
                                       {"max_queue_size", 4, NUMBER, 0, 0},
                                       {0}};
static const hone_serve_row batching[] = {{"preferred_batch_size", 1, NUMBER, 0, 0},
                                          {"max_queue_delay_microseconds", 2, NUMBER, 0, 0},
                                          {"preserve_ordering", 3, NUMBER, 0, 0},
                                          {"priority_levels", 4, NUMBER, 0, 0},
                                          {"default_priority_level", 5, NUMBER, 0, 0},
                                          {"default_queue_policy", 6, MESSAGE, queue, 0},
                                          {0}};
static const char *const controls[] = {"CONTROL_SEQUENCE_START", "CONTROL_SEQUENCE_READY",
                                       "CONTROL_SEQUENCE_END", "CONTROL_SEQUENCE_CORRID", NULL};
static const hone_serve_row control[] = {{"kind", 1, WORD, 0, controls},
                                         {"int32_false_true", 2, NUMBER, 0, 0},
                                         {"fp32_false_true", 3, HONE_SERVE_AS_FLOAT, 0, 0},
                                         {"data_type", 4, WORD, 0, types},
                                         {"bool_false_true", 5, NUMBER, 0, 0},
                                         {0}};
static const hone_serve_row control_input[] = {
    {"name", 1, TEXT, 0, 0}, {"control", 2, MESSAGE, control, 0}, {0}};
static const hone_serve_row initial[] = {{"data_type", 1, WORD, 0, types}, {"dims", 2, NUMBER, 0, 0},
                                         {"zero_data", 3, NUMBER, 0, 0},   {"data_file", 4, TEXT, 0, 0},
                                         {"name", 5, TEXT, 0, 0},          {0}};
static const hone_serve_row state[] = {{"input_name", 1, TEXT, 0, 0},
                                       {"output_name", 2, TEXT, 0, 0},
                                       {"data_type", 3, WORD, 0, types},
                                       {"dims", 4, NUMBER, 0, 0},
                                       {"initial_state", 5, MESSAGE, initial, 0},
                                       {0}};
static const hone_serve_row direct[] = {{"max_queue_delay_microseconds", 1, NUMBER, 0, 0}, {0}};
static const hone_serve_row oldest[] = {{"max_candidate_sequences", 1, NUMBER, 0, 0},
                                        {"preferred_batch_size", 2, NUMBER, 0, 0},
                                        {"max_queue_delay_microseconds", 3, NUMBER, 0, 0},
                                        {0}};
static const hone_serve_row sequence[] = {{"max_sequence_idle_microseconds", 1, NUMBER, 0, 0},
                                          {"control_input", 2, MESSAGE, control_input, 0},
                                          {"direct", 3, MESSAGE, direct, 0},
                                          {"oldest", 4, MESSAGE, oldest, 0},
                                          {"state", 5, MESSAGE, state, 0},
                                          {0}};
static const hone_serve_row step[] = {{"model_name", 1, TEXT, 0, 0},
                                      {"model_version", 2, NUMBER, 0, 0},
                                      {"input_map", 3, MAP, 0, 0},
                                      {"output_map", 4, MAP, 0, 0},
                                      {0}};
static const hone_serve_row ensemble[] = {{"step", 1, MESSAGE, step, 0}, {0}};
static const hone_serve_row parameter[] = {{"string_value", 1, TEXT, 0, 0}, {0}};
static const hone_serve_row transaction[] = {{"decoupled", 1, NUMBER, 0, 0}, {0}};
static const hone_serve_row config[] = {{"name", 1, TEXT, 0, 0},
                                        {"platform", 2, TEXT, 0, 0},
                                        {"version_policy", 3, MESSAGE, policy, 0},
                                        {"max_batch_size", 4, NUMBER, 0, 0},
                                        {"input", 5, MESSAGE, input, 0},
                                        {"output", 6, MESSAGE, output, 0},
                                        {"instance_group", 7, MESSAGE, group, 0},
                                        {"default_model_filename", 8, TEXT, 0, 0},
                                        {"dynamic_batching", 11, MESSAGE, batching, 0},
                                        {"sequence_batching", 13, MESSAGE, sequence, 0},
                                        {"parameters", 14, MAP, parameter, 0},
                                        {"ensemble_scheduling", 15, MESSAGE, ensemble, 0},
                                        {"backend", 17, TEXT, 0, 0},
                                        {"model_transaction_policy", 19, MESSAGE, transaction, 0},
                                        {0}};
const hone_serve_row hone_serve_config_rows[] = {{"config", 1, MESSAGE, config, 0}, {0}};
