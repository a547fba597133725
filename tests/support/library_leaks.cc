// What sanitizers find in libraries, which is not ours to mend: memory that is never given back, and
// locks. They ask a program for these lists; without them nobody calls these functions.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_options();
extern "C" const char* __lsan_default_options() { return "print_suppressions=0"; }
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libcublasLt\n"  // without a driver it fails to initialize, and keeps what it allocated
         "leak:libmpi.so\n"    // Open MPI keeps its parameters and what its plug-ins allocated
         "leak:libevent_core\n";  // calls the plug-ins of Open MPI, which are unloaded by then
}

extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() {
  return "deadlock:mca_btl_tcp\n";  // Open MPI's TCP locks an endpoint and its list in either order
}
