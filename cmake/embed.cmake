# SPDX-License-Identifier: Apache-2.0
# Turns text files into one C string:  cmake -DNAME=n -DHEADING=ON|OFF -DFILES="a|b" -DOUT=file.c -P embed.cmake
# One literal a line of text, so that the generated file reads like its source. HEADING puts "# file NAME" before each file.
string(REPLACE "|" ";" files "${FILES}")
list(SORT files)
set(text "")
foreach(file IN LISTS files)
    file(READ "${file}" part)
    get_filename_component(base "${file}" NAME)
    if(HEADING)
        string(APPEND text "# file ${base}\n")
    endif()
    string(APPEND text "${part}")
    if(NOT part MATCHES "\n$")
        string(APPEND text "\n")
    endif()
endforeach()
string(REPLACE "\\" "\\\\" text "${text}")
string(REPLACE "\"" "\\\"" text "${text}")
string(REPLACE "\n" "\\n\"\n    \"" text "${text}")
file(WRITE "${OUT}" "/* Generated at build; edit the text it was made from. */
#include <stddef.h>
extern const char ${NAME}[];
extern const size_t ${NAME}_bytes;
const char ${NAME}[] =
    \"${text}\";
const size_t ${NAME}_bytes = sizeof ${NAME} - 1;
")
