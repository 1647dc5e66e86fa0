# SPDX-License-Identifier: Apache-2.0
# find_package(hone): hone::hone is the shared library, hone::hone_static the static one.
include(CMakeFindDependencyMacro)
find_dependency(Threads)
include("${CMAKE_CURRENT_LIST_DIR}/honeTargets.cmake")
