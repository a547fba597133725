// live: the answers of its page, and what other programs and pages may try with its server.
#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include <arpa/inet.h>
#include <catch2/catch.hpp>
#include <fmt/core.h>
#include <netinet/in.h>
#include <nlohmann/json.hpp>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/data.h"
#include "tests/support/json_check.h"
#include "tests/support/rehearse.h"

namespace rehearse::cli {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using test::Json;
using test::Ran;

/// A TCP connection to the server.
class Socket {
 public:
  explicit Socket(std::uint16_t port) : handle_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval patience = {.tv_sec = 60, .tv_usec = 0};
    ::setsockopt(handle_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    connected_ = ::connect(handle_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
  }
  Socket(Socket&& other) noexcept : handle_(other.handle_), connected_(other.connected_) {
    other.handle_ = -1;
  }
  ~Socket() {
    if (handle_ >= 0) ::close(handle_);
  }
  bool connected() const { return connected_; }
  void send(const std::string& text) const {
    // A server that refuses a request closes the connection before all of it is sent.
    for (std::size_t done = 0; done < text.size();) {
      const ssize_t n = ::send(handle_, text.data() + done, text.size() - done, MSG_NOSIGNAL);
      if (n <= 0) return;
      done += static_cast<std::size_t>(n);
    }
  }
  void finish() const { ::shutdown(handle_, SHUT_WR); }
  std::string receive() const {
    std::string text;
    char block[1 << 16];
    for (ssize_t n = 0; (n = ::recv(handle_, block, sizeof block, 0)) > 0;)
      text.append(block, static_cast<std::size_t>(n));
    return text;
  }

 private:
  int handle_;
  bool connected_ = false;
};

int status_of(const std::string& reply) {
  return reply.starts_with("HTTP/1.1 ") ? std::stoi(reply.substr(9, 3)) : 0;
}
std::string body_of(const std::string& reply) {
  const std::size_t end = reply.find("\r\n\r\n");
  return end == reply.npos ? "" : reply.substr(end + 4);
}

/// The command while it runs, and its address.
class Live {
 public:
  explicit Live(std::vector<std::string> arguments) : said_(test::scratch_folder() / "address") {
    arguments.insert(arguments.begin(), "live");
    arguments.insert(arguments.end(), {"-o", said_.string()});
    process_.emplace(std::move(arguments));
    while (!fs::exists(said_)) {
      if (process_->ended()) FAIL(process_->wait().errors);
      std::this_thread::sleep_for(milliseconds(5));
    }
    const std::string text = test::text_of(said_);
    const std::size_t host = text.find("http://127.0.0.1:");
    REQUIRE(host != text.npos);
    const std::size_t slash = text.find('/', host + 17);
    port = static_cast<std::uint16_t>(std::stoi(text.substr(host + 17, slash - host - 17)));
    token = text.substr(slash + 1, text.find('/', slash + 1) - slash - 1);
  }
  ~Live() {
    if (process_) process_->signal(SIGKILL), process_->wait();
  }

  std::string host() const { return fmt::format("127.0.0.1:{}", port); }
  std::string ask(const std::string& text) const {
    const Socket socket(port);
    socket.send(text);
    return socket.receive();
  }
  std::string get(const std::string& target, const std::string& headers = "") const {
    return ask(fmt::format("GET {} HTTP/1.1\r\nHost: {}\r\n{}\r\n", target, host(), headers));
  }
  std::string posted(const std::string& path, const std::string& body,
                     const std::string& headers = "") const {
    return fmt::format("POST /{}/{} HTTP/1.1\r\nHost: {}\r\n{}Content-Length: {}\r\n\r\n{}", token,
                       path, host(), headers, body.size(), body);
  }
  std::string post(const std::string& path, const Json& body) const {
    return ask(posted(path, body.dump()));
  }
  Json answer(const std::string& fidelity, const Json& settings = Json::object()) const {
    return Json::parse(body_of(post("answer", {{"fidelity", fidelity}, {"settings", settings}})));
  }
  std::string error(const std::string& fidelity, const Json& settings) const {
    const std::string reply = post("answer", {{"fidelity", fidelity}, {"settings", settings}});
    CHECK(status_of(reply) == 422);
    return Json::parse(body_of(reply))["errors"][0]["message"];
  }
  bool works() const { return status_of(get(fmt::format("/{}/", token))) == 200; }
  Ran end(int signal) {
    process_->signal(signal);
    Ran ran = process_->wait();
    process_.reset();
    return ran;
  }

  std::uint16_t port = 0;
  std::string token;

 private:
  fs::path said_;
  std::optional<test::RunningRehearse> process_;
};

constexpr char kJob[] = R"(# four nodes
workload: {model: gpt2_medium}
training: {global_batch: 64, microbatch: 2}
plan: {data: 4, tensor: 2}
cluster: {device: a100_sxm4_80, devices_per_node: 8, nodes: 1, intra_node: nvswitch}
)";

std::string job_file(const std::string& text = kJob) {
  return test::write_scratch("job.yaml", text).string();
}

Json simulated(const std::string& path, std::vector<std::string> more = {}) {
  more.insert(more.begin(), {"simulate", path, "--format", "json"});
  return test::document(test::rehearse(more));
}

TEST_CASE("the exact answer of a live page is the document of simulate, the closed one its step") {
  const std::string path = job_file();
  const Live live({path});
  CHECK(live.answer("message")["document"] == simulated(path));
  const Json closed = live.answer("closed")["document"];
  const Json whole = simulated(path, {"--fidelity", "closed"});
  for (const char* key : {"step_time", "memory_per_device", "path_parts", "breakdown", "warnings"})
    CHECK(closed[key] == whole[key]);
}

/// The processor time of this many closed answers for a job of two stages.
double processor_time(const std::string& batch, int answers) {
  rusage before = {}, after = {};
  ::getrusage(RUSAGE_CHILDREN, &before);
  Live live({"--model", "llama3_8b", "--gpus", "16", "--device", "h100_sxm5_80", "--plan",
             "tp4,pp2", "--batch", batch});
  for (int i = 0; i < answers; ++i)
    CHECK(live.answer("closed", {{"training.global_batch", batch}}).contains("document"));
  CHECK(live.end(SIGINT).code == 0);
  ::getrusage(RUSAGE_CHILDREN, &after);
  const auto seconds = [](const timeval& from, const timeval& to) {
    return static_cast<double>(to.tv_sec - from.tv_sec) +
           static_cast<double>(to.tv_usec - from.tv_usec) * 1e-6;
  };
  return seconds(before.ru_utime, after.ru_utime) + seconds(before.ru_stime, after.ru_stime);
}

TEST_CASE("a live page answers at once for any number of microbatches, as simulate does") {
  // 2,048 microbatches instead of 128, each of 32 layers: run as a whole, they take 16 times as long.
  CHECK(processor_time("4096", 5) < 3 * processor_time("256", 5));
  const Live live({job_file()});
  const Json settings = {{"training.global_batch", "4096"}};
  const Json closed = live.answer("closed", settings)["document"];
  const std::string saved =
      job_file(body_of(live.post("job", {{"fidelity", "closed"}, {"settings", settings}})));
  const Json whole = simulated(saved, {"--fidelity", "closed"});
  const double step = test::value(whole["step_time"]);
  CHECK(test::value(closed["step_time"]) == Approx(step).epsilon(2e-4));
  REQUIRE(closed["path_parts"].size() == whole["path_parts"].size());
  for (std::size_t i = 0; i < closed["path_parts"].size(); ++i) {
    const Json &part = closed["path_parts"][i], &other = whole["path_parts"][i];
    CHECK(part["part"] == other["part"]);
    CHECK(test::value(part["time"]) ==
          Approx(test::value(other["time"])).epsilon(0).margin(1e-3 * step));
  }
}

TEST_CASE("a setting of a live page is a value of the job file, and can be saved") {
  const std::string path = job_file();
  const Live live({path});
  const Json settings = {{"plan.tensor", "4"},
                         {"training.recompute", "full"},
                         {"plan.collectives.all_reduce", "ring"},
                         {"cluster.nodes", "2"},
                         {"cluster.inter_node.link", "ib_ndr_400"}};
  const Json answer = live.answer("message", settings);
  const std::string saved =
      job_file(body_of(live.post("job", {{"fidelity", "message"}, {"settings", settings}})));
  CHECK(answer["document"] == simulated(saved));
  // The data-parallel degree fills 16 GPUs with a tensor degree of 4: 16 / 4.
  const Json& plan = answer["document"]["plan"];
  CHECK(plan["data"] == 4);
  CHECK(plan["tensor"] == 4);
  CHECK(answer["document"]["job"]["ranks"] == 16);
  const std::string report =
      body_of(live.post("report", {{"fidelity", "message"}, {"settings", settings}}));
  CHECK(report.find("connect-src 'none'") != report.npos);
  CHECK(report.find("rehearse simulate " + path) != report.npos);
}

TEST_CASE("the errors of a live page are those of the command, and it goes on") {
  const std::string path = job_file();
  const Live live({path});
  const std::string bad = job_file(
      "workload: {model: gpt2_medium}\ntraining: {global_batch: 64, "
      "microbatch: 2}\nplan: {data: 4, tensor: 3}\ncluster: {device: "
      "a100_sxm4_80, devices_per_node: 8, nodes: 1}\n");
  const std::string problem = "tensor 3 does not divide 16 heads";
  CHECK(test::rehearse({"simulate", bad}).errors.find(problem) != std::string::npos);
  CHECK(live.error("closed", {{"plan.tensor", "3"}, {"all_gpus", "false"}}).find(problem) !=
        std::string::npos);
  CHECK(live.error("closed", {{"plan.tensor", "3"}}).find("does not divide 8 GPUs") !=
        std::string::npos);
  // The limit of a file, for numbers whose product no integer holds.
  CHECK(live.error("closed", {{"cluster.nodes", "9000000000000"},
                              {"cluster.devices_per_node", "9000000000000"}})
            .find("131,072") != std::string::npos);
  CHECK(live.error("closed", {{"cluster.nodes", "-4"}}).find("nodes") != std::string::npos);
  CHECK(live.error("closed", {{"cluster.device", "h100"}}).find("h100") != std::string::npos);
  CHECK(live.error("closed", {{"slice", "2g.20gb"}}).find("8 ranks on slices") !=
        std::string::npos);
  CHECK(live.answer("closed").contains("document"));
}

TEST_CASE("a live page sets no key that it does not offer, and reads no file") {
  const Live live({job_file()});
  for (const char* key : {"workload.recording", "workload.hugging_face", "input", "calibration",
                          "plan", "plan.stages", "", ".", "op_costs"})
    CHECK(live.error("closed", {{key, "/etc/passwd"}}).find("this page has no setting") !=
          std::string::npos);
  CHECK(live.error("closed", {{"training.microbatch", "{a: b}"}}).find("not a number") !=
        std::string::npos);
  for (const char* body : {"", "[]", "{}", "nonsense", R"({"fidelity": 1, "settings": {}})",
                           R"({"fidelity": "closed", "settings": {"plan.tensor": 8}})"})
    CHECK(status_of(live.ask(live.posted("answer", body))) == 422);
  CHECK(status_of(live.ask(live.posted("answer", std::string(60'000, '[')))) == 422);
  const Live recorded({test::kExample});
  for (const char* key : {"--network", "--input-pipeline"})
    CHECK(recorded.error("replay", {{key, "/etc/passwd"}}).find("/etc/passwd") !=
          std::string::npos);
}

TEST_CASE("a server has no live page, and the message says which commands predict it") {
  test::check_failed(
      test::rehearse({"live", test::source_file("examples/jobs/serve_llama3_70b.yaml")}), 1,
      "describes a server, which has no live page; rehearse simulate and plan predict servers");
}

TEST_CASE("a live page of a recording answers as whatif") {
  Live live({test::kExample});
  const Json whatif =
      test::document(test::rehearse({"whatif", test::kExample, "--scale", "kernel:0.5", "--insert",
                                     "kernel:50us", "--format", "json"}));
  CHECK(live.answer("replay", {{"--scale kernel", "0.5"},
                               {"--insert", "kernel:50us\n"}})["document"] == whatif);
  // The timeline has most of the bytes, and comes with the second answer.
  const Json timed =
      live.answer("timeline", {{"--scale kernel", "0.5"}, {"--insert", "kernel:50us\n"}});
  CHECK(timed["document"] == whatif);
  CHECK(timed.value("timeline", Json()).is_object());
  CHECK_FALSE(live.answer("replay").value("timeline", Json()).is_object());
  // Without edits the step is the replayed one.
  CHECK(live.answer("replay")["document"]["change"] == 0);
  CHECK(live.error("replay", {{"--scale", "nothing=*:2"}}).find("--scale: ") == 0);
  CHECK(status_of(live.post("job", {{"fidelity", "replay"}, {"settings", Json::object()}})) == 422);
}

TEST_CASE("a live page without a file starts from options") {
  const Live live({"--model", "gpt2_medium", "--gpus", "8", "--device", "a100_sxm4_80", "--plan",
                   "tp2", "--batch", "64"});
  CHECK(live.answer("closed")["document"]["plan"]["data"] == 4);
}

TEST_CASE("a live server answers its own page alone") {
  const Live live({job_file()});
  const std::string page = fmt::format("/{}/", live.token);
  CHECK(status_of(live.get(page)) == 200);
  CHECK(status_of(live.get(page, fmt::format("Origin: http://{}\r\n", live.host()))) == 200);
  for (const char* origin : {"http://evil.example", "null", "http://localhost:3000"})
    CHECK(status_of(live.get(page, fmt::format("Origin: {}\r\n", origin))) == 403);
  for (const char* host :
       {"evil.example", "evil.example:80", "", "127.0.0.1.evil.example", "[::1]:1"})
    CHECK(status_of(live.ask(fmt::format("GET {} HTTP/1.1\r\nHost: {}\r\n\r\n", page, host))) ==
          403);
  const std::string other(live.token.size(), '0');
  for (const std::string& target :
       {std::string("/"), "/" + live.token, "/" + other + "/", page + "../../../../etc/passwd",
        page + "%2e%2e/%2e%2e/etc/passwd", std::string("//etc/passwd"), std::string("/etc/passwd"),
        page + "page.html", std::string("*"), std::string("http://127.0.0.1/"), page + "answer"})
    CHECK(status_of(live.get(target)) == 404);
  CHECK(status_of(live.ask(
            fmt::format("DELETE {} HTTP/1.1\r\nHost: {}\r\n\r\n", page, live.host()))) == 404);
  CHECK(live.works());
}

TEST_CASE("a live server survives requests that are too long, no HTTP, or never end") {
  Live live({job_file()});
  CHECK(status_of(live.ask(live.posted("answer", std::string(70'000, 'x')))) == 413);
  CHECK(status_of(live.get("/", fmt::format("X: {}\r\n", std::string(9'000, 'x')))) == 431);
  CHECK(status_of(live.ask("\x16\x03\x01 no HTTP \xff\xfe\r\n\r\n")) == 400);
  std::string noise(100'000, 0);
  for (std::size_t i = 0; i < noise.size(); ++i) noise[i] = static_cast<char>(i * i * 31 + i / 7);
  live.ask(noise);
  CHECK(live.works());
  std::vector<Socket> open;
  for (int i = 0; i < 1'000; ++i) {
    open.emplace_back(live.port);
    REQUIRE(open.back().connected());
    if (i % 2 == 0) open.back().send("POST /answer HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Le");
  }
  const auto from = steady_clock::now();
  CHECK(live.works());
  CHECK(live.answer("closed").contains("document"));
  CHECK(steady_clock::now() - from < std::chrono::seconds(20));
  open.clear();
  for (int i = 0; i < 1'000; ++i) Socket{live.port};
  CHECK(live.works());
  const Ran ran = live.end(SIGINT);
  CHECK(ran.code == 0);
  CHECK(ran.errors.empty());
}

TEST_CASE("a later change ends an earlier answer, and a signal ends all") {
  Live live({"examples/jobs/gpt_175b.yaml"});
  const std::string exact =
      live.posted("answer", Json({{"fidelity", "message"}, {"settings", Json::object()}}).dump());
  const Socket first(live.port), gone(live.port);
  first.send(exact);
  std::this_thread::sleep_for(milliseconds(20));
  CHECK(status_of(live.ask(live.posted("answer", "{}"))) == 422);
  CHECK(status_of(first.receive()) == 409);
  // One that sends no more looks like one that is gone, and is told so if it is not.
  const Socket half(live.port);
  half.send(exact);
  half.finish();
  CHECK(half.receive().find("the connection was closed before the answer") != std::string::npos);
  gone.send(exact);
  std::this_thread::sleep_for(milliseconds(20));
  const auto from = steady_clock::now();
  CHECK(live.end(SIGTERM).code == 0);
  CHECK(steady_clock::now() - from < std::chrono::seconds(1));
  CHECK(gone.receive().empty());
}

}  // namespace
}  // namespace rehearse::cli
