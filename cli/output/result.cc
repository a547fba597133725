#include "cli/output/result.h"

#include "cli/output/document.h"

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
  return write_text(globals, make(globals.format, formats));
}

}  // namespace rehearse::cli
