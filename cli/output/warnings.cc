#include "cli/output/warnings.h"

namespace rehearse::cli {

void put_warnings(Json& document, const std::vector<Warning>& warnings) {
  Json what = Json::array(), remedies = Json::array();
  for (const Warning& warning : warnings) {
    what.push_back(warning.what);
    remedies.push_back(warning.remedy);
  }
  document["warnings"] = std::move(what);
  document["warning_remedies"] = std::move(remedies);
}

}  // namespace rehearse::cli
