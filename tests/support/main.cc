#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>

#ifdef __SANITIZE_ADDRESS__
// If cuBLASLt finds no driver, it fails to initialize and leaks the memory allocated until then.
extern "C" const char* __lsan_default_suppressions() { return "leak:libcublasLt"; }
#endif
