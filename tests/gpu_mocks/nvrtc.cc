// NVRTC of the mock GPU: what it compiles to is the source.
#include <cstring>
#include <string>

extern "C" {
int nvrtcVersion(int* major, int* minor) {
  *major = 13;
  *minor = 0;
  return 0;
}
const char* nvrtcGetErrorString(int) { return "NVRTC_ERROR_OF_THE_MOCK"; }
int nvrtcCreateProgram(void** program, const char* source, const char*, int, const char* const*,
                       const char* const*) {
  *program = new std::string(source);
  return 0;
}
int nvrtcDestroyProgram(void** program) {
  delete static_cast<std::string*>(*program);
  return 0;
}
int nvrtcCompileProgram(void*, int, const char* const* options) {
  return std::strncmp(options[0], "--gpu-architecture=sm_9", 23) == 0 ? 0 : 6;
}
int nvrtcGetCUBINSize(void* program, std::size_t* size) {
  *size = static_cast<std::string*>(program)->size() + 1;
  return 0;
}
int nvrtcGetCUBIN(void* program, char* to) {
  const auto& source = *static_cast<std::string*>(program);
  std::memcpy(to, source.c_str(), source.size() + 1);
  return 0;
}
int nvrtcGetProgramLogSize(void*, std::size_t* size) {
  *size = 0;
  return 0;
}
int nvrtcGetProgramLog(void*, char*) { return 0; }
}
