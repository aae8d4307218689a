local hs = {}

-- Healthy once it has Succeeded, as Argo CD has it for a Job; what it is doing before that is no failure.
local states = {
  Created = "Progressing",
  Running = "Progressing",
  Restarting = "Progressing",
  Suspended = "Suspended",
  Succeeded = "Healthy",
  Failed = "Degraded"
}

-- What keeps a job from running, in the controller's words: worth more than that it waits.
local obstacles = {
  PodsScheduled = "False",
  PodsStarted = "False",
  ReplicaFailure = "True",
  ReconcileError = "True",
  Admitted = "False"
}

-- A job that training-operator ended has no state, but the same conditions, the latest of which holds.
local state, said, obstacle
if obj.status ~= nil then
  local given = obj.status.state
  if given ~= "" then
    state = given
  end
  for _, condition in ipairs(obj.status.conditions or {}) do
    if states[condition.type] ~= nil and condition.status == "True" then
      if given == nil or given == "" or given == condition.type then
        state, said = condition.type, condition.message
      end
    elseif obstacles[condition.type] == condition.status then
      obstacle = condition.message
    end
  end
end

hs.status = states[state] or "Progressing"
if hs.status == "Progressing" and obstacle ~= nil then
  hs.message = obstacle
else
  hs.message = said or "Waiting for the controller"
end
return hs
