#include "profiler/ingest/capture.h"

namespace rehearse::ingest {

bool is_capture_folder(const std::filesystem::path& path) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(path, ignored))
    if (entry.path().extension() == ".cap") return true;
  return false;
}

Status read_capture_folder(const std::filesystem::path& folder, const NewRank&, const Progress&) {
  return fail(Diagnostic{.file = folder.string(), .problem = "capture files cannot be read yet"});
}

}  // namespace rehearse::ingest
