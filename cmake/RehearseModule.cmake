# One target per module (folder); each links exactly what docs/architecture.md allows it to include.

# Flags every target rides on: no global flag commands.
add_library(rehearse_flags INTERFACE)
target_compile_features(rehearse_flags INTERFACE cxx_std_20)
target_compile_options(rehearse_flags INTERFACE -Wall -Wextra -Wshadow -Wconversion
                                                -Wno-sign-conversion
                         $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>) # GCC 12 warns inside std::string
if(REHEARSE_WERROR)
  target_compile_options(rehearse_flags INTERFACE -Werror)
endif()
if(REHEARSE_SANITIZE)
  target_compile_options(rehearse_flags INTERFACE -fsanitize=${REHEARSE_SANITIZE}
                                                  -fno-sanitize-recover=all
                                                  -fno-omit-frame-pointer)
  target_link_options(rehearse_flags INTERFACE -fsanitize=${REHEARSE_SANITIZE})
endif()
if(REHEARSE_FUZZ)
  target_compile_options(rehearse_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
target_include_directories(rehearse_flags INTERFACE ${PROJECT_SOURCE_DIR})

# rehearse_module(name SOURCES a.cc... [PUBLIC targets...] [PRIVATE targets...])
# PUBLIC: modules and libraries that its headers include. PRIVATE: those only its sources include.
function(rehearse_module name)
  cmake_parse_arguments(ARG "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  add_library(rehearse_${name} STATIC ${ARG_SOURCES})
  add_library(rehearse::${name} ALIAS rehearse_${name})
  target_link_libraries(rehearse_${name} PUBLIC rehearse_flags ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE})
endfunction()
