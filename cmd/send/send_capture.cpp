// A temporary directory is removed with the mails in it.

#include "cmd/send/send_capture.hpp"

#include <cstdlib>
#include <filesystem>

#include "carriers/capture/carrier.hpp"
#include "cmd/template/template_serve.hpp"
#include "process/stop_signal.hpp"

namespace mailroom::cmd {
namespace {

std::string directory_of(const CaptureOptions& options) {
  if (options.directory != capture_in_page)
    return std::filesystem::absolute(*options.directory).lexically_normal().string();
  auto pattern = (std::filesystem::temp_directory_path() / "mailroom-capture-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr)
    throw Error(ExitCode::failed, "cannot make a temporary directory for captured mails",
                "--capture DIR names one");
  return pattern;
}

}  // namespace

Capture::Capture(const CaptureOptions& options, Context& context)
    : is_temporary_(options.directory == capture_in_page),
      directory_(directory_of(options)),
      relay_(capture::capture_relay(directory_)) {
  const auto address =
      preview::preview_address(options.listen.value_or(std::string(default_preview_address)));
  const capture::MaildirWriter made(directory_);
  context.log().warn("mails are kept here, and nobody gets them", {{"directory", directory_}});
  if (!is_temporary_ && !options.listen) return;
  mails_ = std::make_unique<preview::CapturedMails>(directory_);
  server_ = std::make_unique<preview::PreviewServer>(address, *mails_);
  tell_of_page(*server_, context);
}

Capture::~Capture() {
  server_.reset();
  std::error_code ignored;
  if (is_temporary_) std::filesystem::remove_all(directory_, ignored);
}

void Capture::wait_for_reader() const {
  if (!server_) return;
  process::StopSignal stop;
  while (!stop.requested())
    stop.sleep_for(std::chrono::hours(1));
}

}  // namespace mailroom::cmd
