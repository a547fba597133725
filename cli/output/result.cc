#include "cli/output/result.h"

#include <cstdio>

#include "sim/base/file.h"

namespace rehearse::cli {
namespace {

std::string make(Format format, const Formats& formats) {
  switch (format) {
    case Format::kTable:
      return formats.text();
    case Format::kJson:
      return json_text(formats.json());
    case Format::kCsv:
      return formats.table().csv();
    case Format::kMarkdown:
      return formats.markdown ? formats.markdown() : formats.table().markdown();
  }
  return {};
}

}  // namespace

Status write_result(const Globals& globals, const Formats& formats) {
  const std::string text = make(globals.format, formats);
  if (globals.output.empty()) {
    const bool written =
        std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
    if (!written) return fail("stdout cannot be written");
    return {};
  }
  Result<PendingFile> file = PendingFile::create(globals.output);
  if (!file) return forward(file);
  if (Status ok = file->write(text); !ok) return ok;
  return file->commit();
}

}  // namespace rehearse::cli
