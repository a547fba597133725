#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>

#ifdef __SANITIZE_ADDRESS__
// Where cuBLASLt finds no driver, it refuses to start and keeps what it took until then.
extern "C" const char* __lsan_default_suppressions() { return "leak:libcublasLt"; }
#endif
