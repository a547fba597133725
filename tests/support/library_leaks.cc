// Memory that libraries never give back, which is not ours to free. LeakSanitizer asks a program for
// this list; without it nobody calls these functions.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_options();
extern "C" const char* __lsan_default_options() { return "print_suppressions=0"; }
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libcublasLt\n"  // without a driver it fails to initialize, and keeps what it allocated
         "leak:libmpi.so\n"    // Open MPI keeps its parameters and what its plug-ins allocated
         "leak:libevent_core\n";  // calls the plug-ins of Open MPI, which are unloaded by then
}
