# One target per module (folder); each links exactly what docs/architecture.md allows it to include.

# Flags every target rides on: no global flag commands.
add_library(rehearse_flags INTERFACE)
target_compile_features(rehearse_flags INTERFACE cxx_std_20)
target_compile_options(rehearse_flags INTERFACE -Wall -Wextra -Wshadow -Wconversion
                                                -Wno-sign-conversion
                         # GCC 12 warns inside std::string, std::vector and std::optional
                         "$<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds;-Wno-restrict;-Wno-stringop-overflow;-Wno-stringop-overread;-Wno-maybe-uninitialized>")
# GCC collects garbage from its first 128 MiB on, for a tenth of its time, though it ends at 1 GiB.
target_compile_options(rehearse_flags INTERFACE
                       $<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=1048576>)
if(REHEARSE_WERROR)
  target_compile_options(rehearse_flags INTERFACE -Werror)
endif()
if(REHEARSE_SANITIZE)
  target_compile_options(rehearse_flags INTERFACE -fsanitize=${REHEARSE_SANITIZE}
                                                  -fno-sanitize-recover=all
                                                  -fno-omit-frame-pointer)
  if(REHEARSE_SANITIZE_WITHOUT) # after the others: the last that names a check decides
    target_compile_options(rehearse_flags INTERFACE -fno-sanitize=${REHEARSE_SANITIZE_WITHOUT})
  endif()
  target_link_options(rehearse_flags INTERFACE -fsanitize=${REHEARSE_SANITIZE})
endif()
if(REHEARSE_FUZZ)
  target_compile_options(rehearse_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
target_include_directories(rehearse_flags INTERFACE ${PROJECT_SOURCE_DIR})

# What nearly every source includes, its own headers included: half of what a compilation reads.
set(rehearse_common_headers <algorithm> <filesystem> <functional> <map> <memory> <optional> <string>
                            <string_view> <vector> <fmt/core.h> <tl/expected.hpp>)

# With REHEARSE_UNITY, several sources of a target are one compilation: most of what a compiler does
# for one of ours is reading headers and instantiating templates, again for each. Those named here
# share one compilation among themselves: names local to them would collide with others of the target.
set(rehearse_batch 32)
function(rehearse_batches target)
  if(NOT REHEARSE_UNITY)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${rehearse_batch})
  if(ARGN)
    foreach(source IN LISTS ARGN)
      cmake_path(ABSOLUTE_PATH source)
      string(APPEND includes "#include \"${source}\"\n")
    endforeach()
    set(apart ${CMAKE_CURRENT_BINARY_DIR}/${target}_apart.cc)
    file(CONFIGURE OUTPUT ${apart} CONTENT "${includes}" @ONLY)
    target_sources(${target} PRIVATE ${apart})
    set_source_files_properties(${apart} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    set_source_files_properties(${ARGN} PROPERTIES HEADER_FILE_ONLY ON)
  endif()
endfunction()

# rehearse_module(name SOURCES a.cc... [APART b.cc...] [PUBLIC targets...] [PRIVATE targets...]
#                 [COLD | HOT] [OWN_PCH])
# APART: sources that share no compilation with those of SOURCES.
# PUBLIC: modules and libraries that its headers include. PRIVATE: those only its sources include.
# COLD: reads inputs and shows results, which is no hot path: optimised little, for short builds.
# HOT: most of the time of tests passes in its loops: optimised with sanitizers too, where the rest of
# the preset `checked` is not.
# OWN_PCH: shares no precompiled headers. Those of cold modules are rehearse_base's, those of others
# rehearse_graph's: flags must be the same.
function(rehearse_module name)
  cmake_parse_arguments(ARG "COLD;HOT;OWN_PCH" "" "SOURCES;APART;PUBLIC;PRIVATE" ${ARGN})
  add_library(rehearse_${name} STATIC ${ARG_SOURCES} ${ARG_APART})
  rehearse_batches(rehearse_${name} ${ARG_APART})
  add_library(rehearse::${name} ALIAS rehearse_${name})
  target_link_libraries(rehearse_${name} PUBLIC rehearse_flags ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE})
  if(ARG_COLD)
    set(owner base)
    target_compile_options(rehearse_${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  else()
    set(owner graph)
  endif()
  if(ARG_HOT AND REHEARSE_SANITIZE)
    target_compile_options(rehearse_${name} PRIVATE -O1)
    set(owner ${name})
  endif()
  if(name STREQUAL owner)
    target_precompile_headers(rehearse_${name} PRIVATE ${rehearse_common_headers})
  elseif(NOT ARG_OWN_PCH)
    target_precompile_headers(rehearse_${name} REUSE_FROM rehearse_${owner})
  endif()
endfunction()

# rehearse_embed(module HEADER folder/files.h NAMESPACE ns FILES folder/a.csv...)
# Compiles the text of each file into the module, as `const std::string_view ns::a_csv`. Sources of the
# module include the header, which also has `ns::all()`. A changed file is compiled anew.
function(rehearse_embed module)
  cmake_parse_arguments(ARG "" "HEADER;NAMESPACE" "FILES" ${ARGN})
  foreach(file IN LISTS ARG_FILES)
    get_filename_component(name ${file} NAME)
    string(REGEX REPLACE "[.-]" "_" name ${name})
    list(APPEND names ${name})
    set(input ${CMAKE_CURRENT_SOURCE_DIR}/${file})
    set(output ${CMAKE_CURRENT_BINARY_DIR}/embedded/${module}/${name}.cc)
    add_custom_command(
      OUTPUT ${output}
      COMMAND ${CMAKE_COMMAND} -DINPUT=${input} -DOUTPUT=${output} -DNAMESPACE=${ARG_NAMESPACE}
              -DNAME=${name} -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
      DEPENDS ${input} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
      COMMENT "Embedding ${file}"
      VERBATIM)
    set_source_files_properties(${output} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
    target_sources(rehearse_${module} PRIVATE ${output})
  endforeach()
  list(JOIN names ";\nextern const std::string_view " externs)
  list(JOIN names ", " all)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/embedded/${ARG_HEADER} @ONLY CONTENT
       "#pragma once\n\n#include <string_view>\n#include <vector>\n\nnamespace @ARG_NAMESPACE@ {\n\
extern const std::string_view @externs@;\n\
inline std::vector<std::string_view> all() { return {@all@}; }\n}\n")
  target_include_directories(rehearse_${module} PRIVATE ${PROJECT_BINARY_DIR}/embedded)
endfunction()
