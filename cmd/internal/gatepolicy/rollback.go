package gatepolicy

import "go.yaml.in/yaml/v3"

type rollbackRule struct{ id string }

func (r *reader) rollback(n *yaml.Node) (x rollbackRule) { return x }
