// A web server for one person: a page and its answers, to browsers on this machine alone.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/result.h"

namespace rehearse::cli {

/// What a request is answered with.
struct Reply {
  unsigned status = 200;
  std::string type = "application/json";
  std::string body = {};
  std::string file = {};  ///< the name under which a browser saves it; empty: shown
};

struct Site {
  std::string page;                ///< HTML
  std::vector<std::string> paths;  ///< to which texts can be posted
  /// Answers a posted text. It is called in a copy of this process (fork), so that it may take any
  /// time, be ended, and fail in any way: a later request to the same path ends an earlier one, and so
  /// does a browser that no longer waits.
  std::function<Reply(std::string_view path, const std::string& body)> answer;
};

/// Listens on a free port of 127.0.0.1 until SIGINT or SIGTERM, then ends all answers and returns.
/// `ready` is called with the address, which contains a random token; its error ends the server. Requests without the token,
/// for another host, or from pages of another origin are refused; no path is looked up in the file
/// system. Requests have at most 64 KiB. Of the connections that have sent no whole request,
/// 256 are kept for 10 s each. REQUIRES: no other thread holds a lock that `answer` needs.
Status serve(const Site& site, const std::function<Status(const std::string& address)>& ready);

}  // namespace rehearse::cli
