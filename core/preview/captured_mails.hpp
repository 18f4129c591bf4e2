// The mails of a maildir, for the page: those that were captured instead of sent.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "preview/directory_watch.hpp"
#include "preview/preview_source.hpp"

namespace mailroom::preview {

/// Shows the newest `most` of them, newest first.
class CapturedMails final : public PreviewSource {
 public:
  static constexpr std::size_t most = 1000;

  /// `directory` has `new`.
  explicit CapturedMails(const std::string& directory);

  std::string title() const override;
  bool takes_data() const override { return false; }
  std::vector<PreviewItem> items() override;
  PreviewResult show(const PreviewRequest& request) override;
  int fd() const override { return watch_.fd(); }
  PreviewChange poll() override;

 private:
  void read(const std::string& file);

  std::string directory_;  ///< with the mails
  std::string title_;
  DirectoryWatch watch_;
  std::mutex mutex_;
  std::map<std::string, PreviewItem> mails_;  ///< by the names of their files, which begin with the time
};

}  // namespace mailroom::preview
