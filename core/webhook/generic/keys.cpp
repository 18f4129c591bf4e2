// Who may post reports of scripts: an entry of the table of keys, with which this file is compiled.

#include "config/key_table.hpp"

namespace mailroom::webhook {

std::vector<config::KeyEntry> generic_keys() {
  return {config::KeyEntry{"bounce.report_secret_files", "MAILROOM_BOUNCE_REPORT_SECRET_FILES", "",
                           "files with the secret of scripts that report bounces",
                           config::secrets_of("report")}
              .list()};
}

}  // namespace mailroom::webhook
