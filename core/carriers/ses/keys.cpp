// The settings of Amazon SES: entries of the table of keys, with which this file is compiled.

#include "config/key_table.hpp"

namespace mailroom::ses {

std::vector<config::KeyEntry> keys() {
  return {
      config::KeyEntry{
          "send.ses_credentials_file", "MAILROOM_SEND_SES_CREDENTIALS_FILE", "",
          "file with the AWS credentials for ses://; without it those of the role of this container or instance",
          config::option_of_relay(config::parse_path)}
          .secret_file("credentials")
          .read_by("ses")
          .in_profiles(),
      config::KeyEntry{"send.ses_configuration_set", "MAILROOM_SEND_SES_CONFIGURATION_SET", "",
                       "configuration set of Amazon SES that mails are sent with", config::option_of_relay()}
          .read_by("ses")
          .in_profiles(),
      config::KeyEntry{"send.ses_endpoint", "MAILROOM_SEND_SES_ENDPOINT", "",
                       "URL of the endpoint of Amazon SES, if not that of the region, such as one of a VPC",
                       config::option_of_relay()}
          .hides(config::Secrecy::url)
          .read_by("ses")
          .in_profiles(),
  };
}

}  // namespace mailroom::ses
