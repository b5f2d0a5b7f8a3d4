// What has no default.
using '../../../deploy/azure/main.bicep'

param sqlAdmin = { name: 'ann@example.com', objectId: '00000000-0000-4000-8000-000000000006', type: 'User' }
param dataContributors = ['00000000-0000-4000-8000-000000000006']
