package devcluster

// Configs lays out a new cluster in cfg.Dir, which is required, and returns the configs
// of its members, for those who run each member as a process of its own. Unlike Start it
// leaves etcd its own timeouts where cfg says none, and has the members wait for the disk.
func Configs(cfg Config) ([]MemberConfig, error) {
	lay, err := openLayout(cfg.Dir, cfg)
	if err != nil {
		return nil, err
	}
	return lay.configs(cfg.Dir, cfg, false), nil
}
