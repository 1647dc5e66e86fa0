#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Models on an OpenCL device, through the command:  opencl.sh HONE SOURCE SHARED [--all]
# A model of ours against the CPU, a wrong index, the kept programs; then a sample of ONNX's own cases and
# small models, --all: every one. Exits 77 where there is no OpenCL device (PoCL: apt-get install
# pocl-opencl-icd ocl-icd-libopencl1).
set -u
# links to cases lead there from another folder
hone=$1 source=$2 shared=$(realpath -m "$3") all=${4:-}
NODE_MIN=1413 # as in conformance.sh
SAMPLE="add_bcast argmax_keepdims_example averagepool_2d_pads basic_conv_with_padding bitwise_and_i32_2d
 cast_FLOAT_to_FLOAT8E5M2
 cumsum_1d gather_elements_1
 gelu_tanh_2 if layer_normalization_2d_axis1 loop11 lstm_with_peepholes matmul_2d matmulinteger
 maxpool_2d_uint8
 quantizelinear_axis reduce_sum_negative_axes_keepdims_random
 resize_downsample_scales_linear scatternd_add softmax_large_number split_equal_parts_1d_opset13
 top_k_smallest transpose_all_permutations_3"
MODELS="mnist-cnn gtcrn-stream silero-vad"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export HONE_KERNELS=$folder/kernels
bad=0
fail() {
    echo "FAIL: $*"
    bad=$((bad + 1))
}
model=$source/examples/digits/model.onnx
out=$("$hone" run "$model" --device opencl --save "$folder/a" 2>&1) || {
    case $out in *"there is no 'opencl' on this machine"*)
        echo "SKIPPED: no OpenCL device is here"
        exit 77 ;;
    esac
    fail "digits: $out"
}
"$hone" run "$model" --save "$folder/b" >/dev/null || fail "digits on the CPU"
"$hone" run "$model" --device opencl --save "$folder/c" >/dev/null 2>&1 || fail "digits again"
cmp "$folder/a/output_0.npy" "$folder/c/output_0.npy" || fail "two runs differ"
floats() { tail -c 40 "$1" | od -An -v -tf4 -w4; } # ten of them
paste <(floats "$folder/a/output_0.npy") <(floats "$folder/b/output_0.npy") |
    awk '{ d = $1 - $2; if (d > 1e-5 || d < -1e-5) bad = 1; n++ } END { exit bad || n != 10 }' ||
    fail "digits differ from the CPU's"
[ -n "$(ls "$folder/kernels" 2>/dev/null)" ] || fail "no program was kept in HONE_KERNELS"
for f in "$folder"/kernels/*; do printf 'x' >>"$f"; done # damage: compiled anew, and right
"$hone" run "$model" --device opencl --save "$folder/d" >/dev/null 2>&1 || fail "digits after damage"
cmp "$folder/a/output_0.npy" "$folder/d/output_0.npy" || fail "a damaged program was used"
for p in f16 bf16; do # stored in halves between nodes: near the CPU's f32, and not the same
    out=$("$hone" run "$model" --device opencl --precision $p --save "$folder/$p" 2>&1) || fail "$p: $out"
    case $out in *"$p: so the device stores"*) ;; *) fail "$p: $out" ;; esac
    paste <(floats "$folder/$p/output_0.npy") <(floats "$folder/b/output_0.npy") |
        awk '{ d = $1 - $2; if (d > 2e-2 || d < -2e-2) bad = 1; n++ } END { exit bad || n != 10 }' ||
        fail "digits in $p differ from the CPU's by more than 2e-2"
    cmp -s "$folder/$p/output_0.npy" "$folder/a/output_0.npy" && fail "$p was asked for and f32 computed"
done
timeout 100 "$hone" bench "$model" --device opencl --runs 3 >/dev/null 2>&1 ||
    fail "bench: its processes begin before the device is opened"
"$hone" compare "$model" --with none --device opencl --runs 2 --loads 1 --json 2>/dev/null |
    grep -q '"device": "opencl"' || fail "compare --device"
timeout 100 "$hone" tune "$model" --device opencl --budget 4s -o "$folder/wisdom" >/dev/null 2>&1 ||
    fail "tune --device"
out=$("$hone" run "$model" --device opencl --wisdom "$folder/wisdom" --save "$folder/e" 2>&1) ||
    fail "with wisdom: $out"
case $out in *"is not used"*) fail "wisdom of a device: $out" ;; esac
paste <(floats "$folder/e/output_0.npy") <(floats "$folder/b/output_0.npy") |
    awk '{ d = $1 - $2; if (d > 1e-5 || d < -1e-5) bad = 1 } END { exit bad }' ||
        fail "tuned schedules give another answer"
out=$("$hone" run "$model" --device opencl:77 2>&1) && fail "opencl:77 is there"
case $out in *"opencl"*) ;; *) fail "opencl:77: $out" ;; esac

if [ -d "$shared/onnx/node" ]; then
    if [ -n "$all" ]; then
        for name in simple pytorch-operator pytorch-converted
        do "$hone" conformance "$shared/onnx/$name" --device opencl --quiet --seconds 200 || fail "$name"
        done
        "$hone" conformance "$shared/onnx/node" --device opencl --quiet --seconds 200 --min $NODE_MIN ||
            fail "node"
    else
        mkdir "$folder/cases"
        for name in $SAMPLE; do ln -s "$shared/onnx/node/test_$name" "$folder/cases/" &&
            [ -e "$folder/cases/test_$name/model.onnx" ] || fail "there is no case $name"; done
        "$hone" conformance "$folder/cases" --device opencl --quiet --seconds 200 2>/dev/null ||
            fail "a sample of cases"
    fi
    [ -n "$all" ] || MODELS=${MODELS%% *}
    for name in $MODELS; do
        [ -e "$shared/models/$name/model.onnx" ] || continue
        out=$("$hone" run "$shared/models/$name/model.onnx" --check "$shared/models/$name/test_data_set_0" \
            --rtol 1e-3 --atol 1e-3 --device opencl 2>&1) || fail "$name: $out"
    done
fi
echo "$bad failed"
[ "$bad" = 0 ]
