#include "tests/validation/studies/inflate.h"

#include <vector>

#include "profiler/ingest/byte_source.h"

namespace rehearse::cli {

Result<std::string> read_inflated(const std::filesystem::path& path) {
  std::unique_ptr<ingest::ByteSource> source = TRY(ingest::open_bytes(path));
  std::string text;
  std::vector<char> block(1 << 16);
  while (const std::size_t n = source->read(block)) text.append(block.data(), n);
  if (const std::string damage = source->damage(); !damage.empty())
    return fail(Diagnostic{.file = path.string(), .problem = damage});
  return text;
}

}  // namespace rehearse::cli
